"""Samples to spline coefficients, exactly, for every bound."""

from torch import Tensor

from regnet.ops import _check, _core, _torch_lines
from regnet.ops._library import define_linear
from regnet.ops.options import Bound, Order, bound_codes, order_codes


def prefilter(image: Tensor, order: Order = 3, bound: Bound = "dct2") -> Tensor:
    """B-spline coefficients of an image: ``pull(prefilter(image, 3), identity, 3) == image``, for any order and bound.

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
    return spline_filter(image.to(dtype), orders, bounds, False).to(image.dtype)


def spline_filter(image: Tensor, order: list[int], bound: list[int], adjoint: bool) -> Tensor:
    """:func:`prefilter` by codes, in the type of ``image``; or its adjoint, with dct1 and replicate another filter."""
    return image if max(order) < 2 else _filter(image, order, bound, adjoint)


@_core.native_or(_torch_lines.prefilter)
def _kernel(image: Tensor, out: Tensor, order: list[int], bound: list[int], adjoint: bool) -> None:
    source = image if image.is_contiguous() and max(order) > 1 else out.copy_(image)
    for axis, (o, b) in enumerate(zip(order, bound, strict=True)):
        if o > 1:
            workspace = _core.workspace(out, 2 * out.shape[2 + axis] * (o + 1))
            _core.call("prefilter", out, source, out, workspace, axis, o, b, adjoint)
            source = out


_filter = define_linear(
    "prefilter",
    "int[] order, int[] bound, bool adjoint",
    _kernel,
    lambda _, order, bound, adjoint: (order, bound, not adjoint),
)
