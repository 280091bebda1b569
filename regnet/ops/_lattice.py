"""A spline sampled on an axis-aligned lattice, and its adjoint: one axis at a time."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regnet.ops import _core
from regnet.ops._library import define_linear


class Ramps(NamedTuple):
    """Where a lattice lies: sample ``p`` of axis ``d`` at ``(scale[d] * p + offset[d]) / divisor[d]`` of the nodes."""

    scale: list[float]
    offset: list[float]
    divisor: list[float]


def _kernel(
    image: Tensor,
    out: Tensor,
    shape: Sequence[int],
    order: list[int],
    bound: list[int],
    scale: list[float],
    offset: list[float],
    divisor: list[float],
    adjoint: bool,
) -> None:
    sizes = image.shape[2:]
    same = [
        n == m and o < 2 and (s, t) == (q, 0)
        for n, m, o, s, t, q in zip(sizes, shape, order, scale, offset, divisor, strict=True)
    ]
    # What shrinks goes first and what grows last, so that little is carried between; and the last axis, whose lines
    # do not lie side by side, goes where the image is smallest.
    shrinking = [d for d in range(len(shape)) if not same[d] and shape[d] < sizes[d]]
    growing = [d for d in reversed(range(len(shape))) if not same[d] and shape[d] >= sizes[d]]
    axes = shrinking + growing
    if not axes:
        out.copy_(image)
    source = image.contiguous()
    for d in axes:
        target = out
        if d != axes[-1]:
            target = source.new_empty([shape[d] if axis == d + 2 else n for axis, n in enumerate(source.shape)])
        _core.native().lattice(
            _core.threads(),
            _core.ref(source),
            _core.ref(target),
            d,
            order[d],
            bound[d],
            scale[d],
            offset[d],
            divisor[d],
            adjoint,
        )
        source = target


_apply = define_linear(
    "lattice",
    "SymInt[] shape, int[] order, int[] bound, float[] scale, float[] offset, float[] divisor, bool adjoint",
    _kernel,
    lambda sizes, _, order, bound, scale, offset, divisor, adjoint: (
        list(sizes),
        order,
        bound,
        scale,
        offset,
        divisor,
        not adjoint,
    ),
    lambda _, shape, *rest: shape,
)


def lattice(
    image: Tensor,
    shape: Sequence[int],
    order: list[int],
    bound: list[int],
    ramps: Ramps,
    adjoint: bool,
    dtype: torch.dtype,
) -> Tensor:
    """Coefficients ``(N, C, *nodes)`` -> samples ``(N, C, *shape)``; the adjoint: samples -> nodes, ``shape`` of them.

    Computed in ``dtype``; the result is of that type.
    """
    return _apply(image.to(dtype), list(shape), order, bound, *ramps, adjoint)
