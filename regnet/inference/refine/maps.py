"""What is optimised: a stationary velocity, or B-spline control points, on a lattice coarser than the images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from regnet import ops
from regnet.spatial.displacement import Displacement
from regnet.spatial.ffd import FFD
from regnet.spatial.grid import Grid
from regnet.spatial.transform import Transform
from regnet.spatial.velocity import Velocity

# Image voxels between the nodes of either.
_COARSER = 1.5
_KNOTS = 3
_SQUARINGS = 5
# The last exponential is taken with this many squarings more than the optimiser's: it is done once.
_EXTRA_SQUARINGS = 2


class Map(Protocol):
    """A deformation of one level, by ``(1, D, *nodes)`` numbers on a lattice of its own."""

    def numbers(self, parts: Sequence[Transform]) -> Tensor:
        """Those of the sum of what coarser levels found."""

    def part(self, numbers: Tensor) -> Transform:
        """What later levels take over, on the CPU."""

    def fields(self, numbers: Tensor) -> dict[str, Tensor]:
        """``displacement`` in voxels of the images, and what loss terms may read besides."""

    def transform(self, numbers: Tensor) -> Transform:
        """The map of the world, on the CPU."""


class VelocityMap:
    """The exponential of a velocity on voxels half as long again as the images': a third of the work, and smoother.

    Args:
        grid: of the images.
    """

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.nodes = grid.coarser(_COARSER)

    def numbers(self, parts: Sequence[Transform]) -> Tensor:
        return _sum(parts, self.nodes)

    def part(self, numbers: Tensor) -> Displacement:
        return Displacement(numbers[0].cpu(), self.nodes)

    def fields(self, numbers: Tensor) -> dict[str, Tensor]:
        flow = ops.integrate(numbers, steps=_SQUARINGS, bound="replicate")
        return {"displacement": ops.resize_flow(flow, self.grid.shape, bound="replicate"), "velocity": numbers}

    def transform(self, numbers: Tensor) -> Velocity:
        return Velocity(numbers[0].cpu(), self.nodes, _SQUARINGS + _EXTRA_SQUARINGS)


class ControlMap:
    """A free-form deformation with control points every three voxels.

    Args:
        grid: of the images.
    """

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        points = [(n - 1) // _KNOTS + 4 for n in grid.shape]
        self.nodes = FFD(torch.zeros(grid.ndim, *points), grid, _KNOTS).lattice

    def numbers(self, parts: Sequence[Transform]) -> Tensor:
        # In voxels of the images; the spline through the values at the points, since those are no coefficients.
        return ops.prefilter(_sum(parts, self.nodes) * _KNOTS, 3, "replicate")

    def part(self, numbers: Tensor) -> FFD:
        return self.transform(numbers)

    def fields(self, numbers: Tensor) -> dict[str, Tensor]:
        spacing = numbers.new_full((self.grid.ndim,), _KNOTS)
        return {
            "displacement": ops.ffd(numbers, self.grid.shape, _KNOTS),
            "control": numbers,
            "control_spacing": spacing,
        }

    def transform(self, numbers: Tensor) -> FFD:
        return FFD(numbers[0].cpu(), self.grid, _KNOTS)


MAPS: dict[str, Callable[[Grid], Map]] = {"velocity": VelocityMap, "control": ControlMap}


def _sum(parts: Sequence[Transform], nodes: Grid) -> Tensor:
    """``(1, D, *nodes)``, voxels of the nodes."""
    total = torch.zeros(1, nodes.ndim, *nodes.shape)
    for part in parts:
        total += part.on(nodes).flow.to(total)
    return total
