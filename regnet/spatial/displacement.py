"""A map of the world given by a displacement field."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from regnet import ops
from regnet.spatial.grid import Grid, matrix
from regnet.spatial.transform import Transform

# What a field does beyond its grid, as the operators call it.
OUTSIDE: dict[str, bool | str] = {"edge": True, "identity": "edge"}


@dataclass(frozen=True, eq=False)
class Displacement(Transform):
    """The world map ``x -> x + d(x)``, from the fixed to the moving image; d comes from a field on a grid.

    With ``A`` the grid's affine, ``d(x) = A[:D, :D] @ flow(A^-1 x)``. Between voxels the field is linear.

    Args:
        flow: ``(D, *grid.shape)``, voxels of ``grid``; channel ``d`` lies along array axis ``d``.
        grid: usually that of the fixed image.
        outside: beyond the grid the field goes on as at its edge (``"edge"``), or is zero (``"identity"``), which is
            how ITK takes its files. The grid ends half a voxel (and a twentieth, for rounding) beyond its outer voxels.

    Raises:
        ValueError: the field does not have the shape of the grid, or ``outside`` is another word.
    """

    flow: Tensor = field(repr=False)
    grid: Grid
    outside: str = "edge"

    def __post_init__(self) -> None:
        if tuple(self.flow.shape) != (self.grid.ndim, *self.grid.shape):
            raise ValueError(
                f"a field on this grid has the shape {(self.grid.ndim, *self.grid.shape)}, got {tuple(self.flow.shape)}"
            )
        if self.outside not in OUTSIDE:
            raise ValueError(f"outside must be one of {', '.join(OUTSIDE)}, got {self.outside!r}")

    @classmethod
    def identity(cls, grid: Grid, device: torch.device | str | None = None) -> Displacement:
        """The field that moves nothing."""
        return cls(torch.zeros((grid.ndim, *grid.shape), device=device), grid)

    @property
    def ndim(self) -> int:
        """Number of axes of the world, 2 or 3."""
        return self.grid.ndim

    @property
    def home(self) -> Grid:
        """The field's grid."""
        return self.grid

    def _map_points(self, world: Tensor) -> Tensor:
        return moved_points(world, self.flow, self.grid, 1, OUTSIDE[self.outside])

    def displacement_mm(self) -> Tensor:
        """The displacement of every voxel of the grid, ``(D, *spatial)``, RAS mm."""
        return torch.tensordot(self.grid.affine[:-1, :-1].to(self.flow), self.flow, dims=1)

    def on(self, grid: Grid) -> Displacement:
        """The same world map, sampled at the voxels of another grid and in its voxels; beyond that as at its edge."""
        return self if grid == self.grid else super().on(grid)

    def inverse(self) -> Displacement:
        """The map from the moving to the fixed image, on the same grid. Where the field folds, a warning says so."""
        return Displacement(ops.invert(self.flow[None])[0], self.grid, self.outside)

    def follow(self, flow: Tensor, grid: Grid) -> Tensor:
        """See :meth:`Transform.follow`."""
        return moved_flow(flow, grid, self.flow, self.grid, 1, OUTSIDE[self.outside])

    def _still(self, grid: Grid) -> Tensor:
        return torch.zeros((grid.ndim, *grid.shape), dtype=self.flow.dtype, device=self.flow.device)


def moved_points(world: Tensor, coeff: Tensor, grid: Grid, order: int, extrapolate: bool | str) -> Tensor:
    """``world + A[:D, :D] @ d(A^-1 world)`` for a field of spline coefficients on a grid with the affine ``A``.

    Args:
        world: ``(..., D)``, RAS mm.
        coeff: ``(D, *grid.shape)``, voxels of ``grid``.

    Returns:
        ``(..., D)``, RAS mm, float64.
    """
    world = world.to(coeff.device, torch.float64)
    voxel = grid.to_voxel(world).reshape(-1, grid.ndim)
    coords = voxel.T.reshape(1, grid.ndim, *(1,) * (grid.ndim - 1), -1)
    # The look-up in the field's own precision: else the whole field would be copied for a handful of points.
    shift = ops.pull(coeff[None], coords.to(coeff.dtype), order=order, bound="replicate", extrapolate=extrapolate)
    linear = grid.affine[:-1, :-1].to(coeff.device)
    return world + (linear @ shift.reshape(grid.ndim, -1).double()).T.reshape(world.shape)


def moved_flow(flow: Tensor, grid: Grid, coeff: Tensor, lattice: Grid, order: int, extrapolate: bool | str) -> Tensor:
    """The displacement of "first ``flow``, then the field of spline coefficients on a lattice".

    Args:
        flow: ``(D, *grid.shape)``, voxels of ``grid``.
        coeff: ``(D, *lattice.shape)``, voxels of ``lattice``.

    Returns:
        ``(D, *grid.shape)``, voxels of ``grid``.
    """
    there = ops.warp(
        coeff[None].to(flow.device),
        flow[None],
        order=order,
        bound="replicate",
        extrapolate=extrapolate,
        matrix=matrix(grid, lattice).to(flow),
        prefilter=False,
    )[0]
    back = matrix(lattice, grid)[0, :, :-1].to(there)
    return torch.tensordot(back, there, dims=1).add_(flow)  # nobody else holds it
