"""Sums over a sliding window, at a cost that does not depend on the window."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from regnet.ops import _check, _core


def box_sum(image: Tensor, window: int | Sequence[int]) -> Tensor:
    """Sum over a centred window, zeros outside the image.

    Args:
        image: ``(N, C, *spatial)``.
        window: odd number of voxels, one or one per axis.

    Returns:
        ``(N, C, *spatial)``, of the type of ``image``. Summed in float64, by running sums.

    Raises:
        ValueError: not an image, or a window that is not odd and positive.
    """
    ndim = _check.image("image", image)
    _, dtype = _check.together(image=image)
    windows = [window] * ndim if isinstance(window, int) else list(window)
    if len(windows) != ndim or not all(isinstance(w, int) and w > 0 and w % 2 for w in windows):
        raise ValueError(
            f"window must be an odd positive integer, or {ndim} of them, so that it has a centre; got {window!r}"
        )
    return _box(image.to(dtype), windows).to(image.dtype)


@torch.library.custom_op("regnet::box_sum", mutates_args=(), schema="(Tensor image, int[] window) -> Tensor")
def _box_op(image, window):  # type: ignore[no-untyped-def]
    out = torch.empty(image.shape, dtype=image.dtype, device=image.device).copy_(image)
    for axis, w in enumerate(window):
        if w > 1:
            _core.native().box_sum(_core.threads(), _core.ref(out), axis, w)
    return out


@_box_op.register_fake
def _(image, window):  # type: ignore[no-untyped-def]
    return torch.empty(image.shape, dtype=image.dtype, device=image.device)


def _setup(ctx: Any, inputs: tuple, output: Tensor) -> None:
    _, ctx.window = inputs


def _backward(ctx: Any, grad: Tensor) -> tuple:
    return _box(grad, ctx.window), None  # the window is centred and what is outside counts as zero: self-adjoint


_box_op.register_autograd(_backward, setup_context=_setup)


class _Box(torch.autograd.Function):
    @staticmethod
    def forward(image, window):  # type: ignore[no-untyped-def]
        return _box_op(image, window)

    setup_context = staticmethod(_setup)
    backward = staticmethod(_backward)

    @staticmethod
    def jvp(ctx, dimage, *_):  # type: ignore[no-untyped-def]
        return _box(dimage, ctx.window)

    @staticmethod
    def vmap(info, in_dims, image, window):  # type: ignore[no-untyped-def]
        return _box(image.movedim(in_dims[0], 0).flatten(0, 1), window).unflatten(0, (info.batch_size, -1)), 0


def _box(image: Tensor, window: list[int]) -> Tensor:
    call: Any = _box_op if torch.compiler.is_compiling() else _Box.apply
    return call(image, window)
