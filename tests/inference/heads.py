"""A head known at every point of the world, so that it can be stored on any grid, moved, and measured."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from regnet.io import Image
from regnet.spatial import Grid

Map = Callable[[Tensor], Tensor]


def intensity(world: Tensor, radius: float) -> Tensor:
    """Brightness at ``(..., D)`` mm: a textured ellipsoid about the origin, 0 outside."""
    stretch = torch.tensor([1.0, 1.25, 0.9], dtype=torch.float64)[: world.shape[-1]]
    distance = (world / stretch).norm(dim=-1) / radius
    waves = sum(
        torch.cos(2 * math.pi * (1.3 + 0.4 * axis) * world[..., axis] / radius + axis)
        for axis in range(world.shape[-1])
    )
    return torch.sigmoid((1 - distance) * 12) * (100 + 20 * waves)


def labels(world: Tensor, radius: float) -> Tensor:
    """Label at ``(..., D)`` mm: 7 in the shell, 41 in the core, 0 outside."""
    stretch = torch.tensor([1.0, 1.25, 0.9], dtype=torch.float64)[: world.shape[-1]]
    distance = (world / stretch).norm(dim=-1) / radius
    shell = torch.where(distance < 1, 7, 0)
    return torch.where(distance < 0.6, 41, shell)


def points(grid: Grid) -> Tensor:
    """World position of every voxel, ``(*shape, D)``."""
    axes = [torch.arange(n, dtype=torch.float64) for n in grid.shape]
    return grid.to_world(torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1))


def centred(shape: tuple[int, ...], spacing: float | tuple[float, ...] = 1.0, turn: float = 0.0) -> Grid:
    """A grid about the world's origin, its first two axes turned by ``turn`` degrees."""
    ndim = len(shape)
    steps = torch.tensor([spacing] * ndim if isinstance(spacing, int | float) else spacing, dtype=torch.float64)
    rotation = torch.eye(ndim, dtype=torch.float64)
    c, s = math.cos(math.radians(turn)), math.sin(math.radians(turn))
    rotation[:2, :2] = torch.tensor([[c, -s], [s, c]], dtype=torch.float64)
    affine = torch.eye(ndim + 1, dtype=torch.float64)
    affine[:-1, :-1] = rotation * steps
    affine[:-1, -1] = -affine[:-1, :-1] @ torch.tensor([(n - 1) / 2 for n in shape], dtype=torch.float64)
    return Grid(shape, affine)


def head(grid: Grid, radius: float = 12.0, there: Map = lambda x: x) -> Image:
    """The head on ``grid``, seen through a map: the image at ``x`` is the head at ``there(x)``."""
    return Image(intensity(there(points(grid)), radius).float()[None], grid)


def label_map(grid: Grid, radius: float = 12.0, there: Map = lambda x: x) -> Image:
    """The head's labels on ``grid``."""
    return Image(labels(there(points(grid)), radius).to(torch.int16)[None], grid)


def shift(*mm: float) -> Map:
    """The map ``x -> x + mm``."""
    return lambda x: x + torch.tensor(mm, dtype=torch.float64)
