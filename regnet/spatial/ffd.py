"""A map of the world given by B-spline control points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from regnet import ops
from regnet.spatial.displacement import Displacement, moved_flow, moved_points
from regnet.spatial.grid import Grid, per_axis
from regnet.spatial.transform import Transform


@dataclass(frozen=True, eq=False)
class FFD(Transform):
    """A free-form deformation: the displacement is a cubic B-spline, everywhere, between the voxels too.

    Args:
        control: ``(D, *points)``, voxels of ``grid``: the spline's coefficients, as :func:`regnet.ops.ffd` takes them;
            control point ``k`` lies at voxel ``(k - 1) * spacing``. Beyond them it goes on as at the outermost.
        grid: the image grid that the control points cover.
        spacing: voxels of ``grid`` between control points, one number or one per axis.

    Raises:
        ValueError: not one channel per axis, or too few points to cover the grid.
    """

    control: Tensor = field(repr=False)
    grid: Grid
    spacing: float | Sequence[float]

    def __post_init__(self) -> None:
        spacing = per_axis(self.spacing, self.grid.ndim, "spacing")
        object.__setattr__(self, "spacing", spacing)
        if self.control.ndim != self.grid.ndim + 1 or self.control.shape[0] != self.grid.ndim:
            raise ValueError(
                f"control points of a {self.grid.ndim}-D grid have {self.grid.ndim} channels and as many axes, "
                f"got the shape {tuple(self.control.shape)}"
            )
        needed = [int((n - 1) // s) + 4 for n, s in zip(self.grid.shape, spacing, strict=True)]
        if any(have < want for have, want in zip(self.control.shape[1:], needed, strict=True)):
            raise ValueError(f"{tuple(needed)} control points are needed, got {tuple(self.control.shape[1:])}")

    @property
    def lattice(self) -> Grid:
        """Where the control points lie in the world."""
        steps = torch.tensor(self.spacing, dtype=torch.float64)
        affine = self.grid.affine.clone()
        affine[:-1, :-1] *= steps
        affine[:-1, -1] = self.grid.to_world(-steps)
        return Grid(tuple(self.control.shape[1:]), affine)

    @property
    def ndim(self) -> int:
        """Number of axes of the world, 2 or 3."""
        return self.grid.ndim

    @property
    def home(self) -> Grid:
        """The grid that the control points cover."""
        return self.grid

    def _map_points(self, world: Tensor) -> Tensor:
        return moved_points(world, self._coefficients(), self.lattice, 3, True)

    def inverse(self) -> Displacement:
        """The map from the moving to the fixed image, as a field on the same grid."""
        return self.on(self.grid).inverse()

    def on(self, grid: Grid) -> Displacement:
        """The same world map, sampled at the voxels of a grid and in its voxels."""
        if grid == self.grid:  # the same numbers, separable and so faster
            return Displacement(ops.ffd(self.control[None], grid.shape, self.spacing)[0], grid)
        return super().on(grid)

    def follow(self, flow: Tensor, grid: Grid) -> Tensor:
        """See :meth:`Transform.follow`."""
        return moved_flow(flow, grid, self._coefficients(), self.lattice, 3, True)

    def _coefficients(self) -> Tensor:
        """The control points in voxels of their own lattice."""
        steps = torch.tensor(self.spacing).to(self.control).reshape(-1, *[1] * self.ndim)
        return self.control / steps

    def _still(self, grid: Grid) -> Tensor:
        return torch.zeros((grid.ndim, *grid.shape), dtype=self.control.dtype, device=self.control.device)
