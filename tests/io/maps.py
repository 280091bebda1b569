"""Transforms and images to try the formats with: random, oblique, anisotropic, of unequal grids."""

from pathlib import Path

import torch
from torch import Tensor

from regnet.io import write_image
from regnet.spatial import Affine, Composite, Displacement, Grid, Transform
from tests.spatial.worlds import centres, rotation, waves


def random_grid(ndim: int, seed: int, shear: float = 0.0, mirrored: bool | None = None) -> Grid:
    """An oblique grid about the origin; every second one mirrored, if not told; sheared by a little, if told."""
    draw = torch.Generator().manual_seed(seed)
    shape = tuple(int(n) for n in torch.randint(12, 22, (ndim,), generator=draw))
    spacing = 1 + 1.5 * torch.rand(ndim, generator=draw, dtype=torch.float64)
    spacing[0] *= -1 if (seed % 2 if mirrored is None else mirrored) else 1
    angle = float(60 * torch.rand(1, generator=draw) - 30)
    upper = torch.eye(ndim, dtype=torch.float64)
    upper[0, 1] = shear
    affine = torch.eye(ndim + 1, dtype=torch.float64)
    affine[:-1, :-1] = rotation(ndim, angle) @ torch.diag(spacing) @ upper
    centre = 4 * torch.rand(ndim, generator=draw, dtype=torch.float64) - 2
    affine[:-1, -1] = centre - affine[:-1, :-1] @ (torch.tensor(shape, dtype=torch.float64) - 1) / 2
    return Grid(shape, affine)


def field(grid: Grid, millimetres: float = 2.0) -> Displacement:
    """A smooth deformation of about so many millimetres."""
    world = centres(grid)
    steps = torch.stack([torch.sin(world.sum(dim=-1) / (9 + 2 * d) + d) for d in range(grid.ndim)])
    flow = torch.tensordot(torch.linalg.inv(grid.affine[:-1, :-1]), millimetres * steps, dims=1)
    return Displacement(flow.float(), grid)


def affine(ndim: int, degrees: float = 7.0) -> Affine:
    """A turn, a stretch, a shear and a shift."""
    matrix = torch.eye(ndim + 1, dtype=torch.float64)
    stretch = torch.diag(torch.tensor([1.05, 0.96, 1.02], dtype=torch.float64)[:ndim])
    stretch[0, 1] = 0.04
    matrix[:-1, :-1] = rotation(ndim, degrees) @ stretch
    matrix[:-1, -1] = torch.tensor([1.25, -0.75, 0.5], dtype=torch.float64)[:ndim]
    return Affine(matrix)


def inner(grid: Grid, count: int = 40) -> Tensor:
    """Random places well within a grid, ``(count, D)``, RAS mm."""
    draw = torch.Generator().manual_seed(5)
    share = torch.rand(count, grid.ndim, generator=draw, dtype=torch.float64)
    return grid.to_world(2.5 + share * (torch.tensor(grid.shape, dtype=torch.float64) - 6))


def apart(a: Transform, b: Transform, points: Tensor) -> float:
    """The largest distance between where two maps take points, mm."""
    return float((a.map_points(points) - b.map_points(points)).norm(dim=-1).max())


def write_pair(folder: Path, fixed: Grid, moving: Grid) -> Tensor:
    """``fixed.nii.gz`` and ``moving.nii.gz``, smooth images of 0 to 100; the moving one is returned."""
    write_image(folder / "fixed.nii.gz", waves(fixed)[0], fixed)
    write_image(folder / "moving.nii.gz", waves(moving)[0], moving)
    return waves(moving)


def in_view(transform: Transform, moving: Grid, fixed: Grid) -> Tensor:
    """Voxels of the fixed grid that no border concerns, ``(*fixed.shape)``: every program ends in its own way there.

    They lie a voxel within the fixed image, inside every field, and come out half a voxel within the moving image.
    """
    places = centres(fixed)
    seen = _within(fixed, places, 1 - 1e-6)
    for part in transform.parts if isinstance(transform, Composite) else (transform,):
        if isinstance(part, Displacement):
            seen &= _within(part.grid, places, 0)
        places = part.map_points(places)
    return seen & _within(moving, places, 0.5)


def _within(grid: Grid, places: Tensor, margin: float) -> Tensor:
    at = grid.to_voxel(places)
    return ((at >= margin) & (at <= torch.tensor(grid.shape) - 1 - margin)).all(-1)
