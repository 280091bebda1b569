"""Filter and sample in one operator, so that a graph keeps the image and not its coefficients.

The caller has the image anyway; the backward filters it again, which is cheap beside the sampling that follows.  A
chain of squarings keeps one field a step, not two.
"""

from typing import Any

from torch import Tensor

from regnet.ops import _coordinates as coordinates
from regnet.ops._families import contract, inner, sample, sample_kernel, scatter
from regnet.ops._how import SCHEMA, How
from regnet.ops._library import define, fold, save, unfold
from regnet.ops.prefilter import spline_filter


def interpolate(image: Tensor, coords: Tensor, matrix: Tensor | None, how: How) -> Tensor:
    """``sample`` of the coefficients of ``image``, a batch of one among them broadcast: (N, C, *out)."""
    return _interpolate(image, coords, matrix, *how)


def _coefficients(image: Tensor, coords: Tensor, how: How) -> Tensor:
    return spline_filter(image, how.order, how.bound, False).expand(coords.shape[0], *image.shape[1:])


def _kernel(image, coords, matrix, *how):  # type: ignore[no-untyped-def]
    return sample_kernel(_coefficients(image, coords, How(*how)), coords, matrix, 0, *how)


def _fake(image, coords, matrix, *how):  # type: ignore[no-untyped-def]
    return image.new_empty([coords.shape[0], image.shape[1], *coords.shape[2:]])


def _setup(ctx: Any, inputs: tuple, output: Tensor) -> None:
    image, coords, matrix, *how = inputs
    ctx.how, ctx.shape, ctx.broadcast = How(*how), image.shape[2:], image.shape[0] != coords.shape[0]
    need_image, *need_x = ctx.needs_input_grad[:3]
    save(ctx, (image, coords, matrix), (any(need_x), need_image or any(need_x), True))


def _backward(ctx: Any, grad: Tensor | None) -> tuple:
    if grad is None:
        return (None,) * 7
    (image, coords, matrix), how = ctx.saved_tensors, ctx.how

    def grad_x() -> Tensor:
        return contract(_coefficients(image, coords, how), coords, matrix, grad, 0, how)

    grads = coordinates.gradients(ctx, grad_x, coords, matrix, how, 1)
    grad_image = None
    if ctx.needs_input_grad[0]:
        grad_coeff = scatter(grad, coords, matrix, ctx.shape, 0, how)
        grad_coeff = grad_coeff.sum(0, keepdim=True) if ctx.broadcast else grad_coeff
        grad_image = spline_filter(grad_coeff, how.order, how.bound, True)
    return grad_image, *grads, *[None] * 4


def _jvp(ctx, dimage, dcoords, dmatrix, *_):  # type: ignore[no-untyped-def]
    (image, coords, matrix), how = ctx.saved_tensors, ctx.how.silent()
    dx = coordinates.tangent(coords, matrix, dcoords, dmatrix, how)
    out = interpolate(dimage, coords, matrix, how) if dimage is not None else 0
    if dx is not None:
        gradient = sample(_coefficients(image, coords, how), coords, matrix, 1, how)
        out = out + inner(gradient, dx, 0)
    return out


def _vmap(info, in_dims, image, coords, matrix, *how):  # type: ignore[no-untyped-def]
    image, coords, matrix = fold(info.batch_size, in_dims, image, coords, matrix)
    _, order, bound, _ = how
    coeff = spline_filter(image, order, bound, False).unflatten(0, (info.batch_size, -1))
    coeff = coeff.expand(-1, coords.shape[0] // info.batch_size, *image.shape[1:]).flatten(0, 1)
    return unfold(info.batch_size, sample(coeff, coords, matrix, 0, How(*how))), 0


_interpolate = define(
    "interpolate",
    f"(Tensor image, Tensor coords, Tensor? matrix, {SCHEMA}) -> Tensor",
    _kernel,
    _fake,
    _backward,
    _setup,
    _jvp,
    _vmap,
)
