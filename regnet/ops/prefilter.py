"""Samples to spline coefficients, exactly, for every bound."""

from typing import Any

import torch
from torch import Tensor

from regnet.ops import _check, _core
from regnet.ops.options import Bound, Order, bound_codes, order_codes


def prefilter(image: Tensor, order: Order = 3, bound: Bound = "dct2") -> Tensor:
    """B-spline coefficients of an image: ``pull(prefilter(image), identity) == image``.

    Args:
        image: ``(N, C, *spatial)`` samples.
        order: spline order 0 to 7, one or one per axis; orders 0 and 1 leave the image as it is.
        bound: how the signal continues outside its grid, one or one per axis; the filter is exact for each of the
            seven, and so is its adjoint (the backward).

    Returns:
        ``(N, C, *spatial)`` coefficients, of the type of ``image``; computed in float64 if it is, else in float32.

    Raises:
        ValueError: not an image, or an unknown order or bound.

    Source:
        Recursions: Unser, Aldroubi & Eden, IEEE TSP 1993, with start and end values for each bound; a banded LU where
        no recursion is exact (zero and replicate above order 3).
    """
    ndim = _check.image("image", image)
    _, dtype = _check.together(image=image)
    orders, bounds = order_codes(order, ndim), bound_codes(bound, ndim)
    if max(orders) < 2:
        return image
    return _filter(image.to(dtype), orders, bounds, False).to(image.dtype)


@torch.library.custom_op(
    "regnet::prefilter", mutates_args=(), schema="(Tensor image, int[] order, int[] bound, bool adjoint) -> Tensor"
)
def _prefilter_op(image, order, bound, adjoint):  # type: ignore[no-untyped-def]
    out = torch.empty(image.shape, dtype=image.dtype, device=image.device).copy_(image)
    for axis, (o, b) in enumerate(zip(order, bound, strict=True)):
        if o > 1:
            _core.native().prefilter(_core.threads(), _core.ref(out), axis, o, b, adjoint)
    return out


@_prefilter_op.register_fake
def _(image, order, bound, adjoint):  # type: ignore[no-untyped-def]
    return torch.empty(image.shape, dtype=image.dtype, device=image.device)


def _setup(ctx: Any, inputs: tuple, output: Tensor) -> None:
    _, ctx.order, ctx.bound, ctx.adjoint = inputs


def _backward(ctx: Any, grad: Tensor) -> tuple:
    return _filter(grad, ctx.order, ctx.bound, not ctx.adjoint), None, None, None


_prefilter_op.register_autograd(_backward, setup_context=_setup)


class _Prefilter(torch.autograd.Function):
    @staticmethod
    def forward(image, order, bound, adjoint):  # type: ignore[no-untyped-def]
        return _prefilter_op(image, order, bound, adjoint)

    setup_context = staticmethod(_setup)
    backward = staticmethod(_backward)

    @staticmethod
    def jvp(ctx, dimage, *_):  # type: ignore[no-untyped-def]
        return _filter(dimage, ctx.order, ctx.bound, ctx.adjoint)

    @staticmethod
    def vmap(info, in_dims, image, order, bound, adjoint):  # type: ignore[no-untyped-def]
        out = _filter(image.movedim(in_dims[0], 0).flatten(0, 1), order, bound, adjoint)
        return out.unflatten(0, (info.batch_size, -1)), 0


def _filter(image: Tensor, order: list[int], bound: list[int], adjoint: bool) -> Tensor:
    call: Any = _prefilter_op if torch.compiler.is_compiling() else _Prefilter.apply
    return call(image, order, bound, adjoint)
