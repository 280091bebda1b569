"""A spline sampled on an axis-aligned lattice, and its adjoint: one axis at a time."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regnet.ops import _core, _torch_lines
from regnet.ops._library import define_linear


class Ramps(NamedTuple):
    """Where a lattice lies: sample ``p`` of an axis at ``(scale * p / spacing + offset) / divisor`` of the nodes.

    Whole numbers where they may be sizes that ``torch.compile`` does not know, which are no floats for torch 2.4.
    """

    spacing: list[float]
    scale: list[int]
    offset: list[int]
    divisor: list[int]


class _Axis(NamedTuple):
    order: int
    bound: int
    spacing: float
    scale: int
    offset: int
    divisor: int

    def keeps_voxels(self) -> bool:
        """Whether every sample is its own node."""
        return self.order < 2 and self.offset == 0 and self.scale == self.divisor * self.spacing


@_core.native_or(_torch_lines.lattice)
def _kernel(image: Tensor, out: Tensor, shape: Sequence[int], *rest: Any) -> None:
    *per_axis, adjoint = rest
    axes = [_Axis(*values) for values in zip(*per_axis, strict=True)]
    sizes = image.shape[2:]
    moved = [d for d, axis in enumerate(axes) if sizes[d] != shape[d] or not axis.keeps_voxels()]
    # What shrinks goes first and what grows last, so that little is carried between; and the last axis, whose lines
    # do not lie side by side, goes where the image is smallest.
    passes = [d for d in moved if shape[d] < sizes[d]] + [d for d in reversed(moved) if shape[d] >= sizes[d]]
    if not passes:
        out.copy_(image)
    source = image.contiguous()
    for d in passes:
        between = [*source.shape[: d + 2], shape[d], *source.shape[d + 3 :]]
        target = out if d == passes[-1] else source.new_empty(between)
        samples = (source if adjoint else target).shape[d + 2]
        workspace = _core.workspace(source, 2 * samples * (axes[d].order + 1))
        _core.call("lattice", source, source, target, workspace, d, *axes[d], adjoint)
        source = target


_apply = define_linear(
    "lattice",
    "SymInt[] shape, int[] order, int[] bound, "
    "float[] spacing, SymInt[] scale, SymInt[] offset, SymInt[] divisor, bool adjoint",
    _kernel,
    lambda sizes, _, *rest: (list(sizes), *rest[:-1], not rest[-1]),
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
