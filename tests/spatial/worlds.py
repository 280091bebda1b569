"""Grids and smooth images to try things on: oblique, unequal axes, unequal spacing."""

import math

import torch
from torch import Tensor

from regnet.spatial import Grid


def rotation(ndim: int, degrees: float) -> Tensor:
    """A rotation about an axis that is none of the world's."""
    angle = math.radians(degrees)
    turn = torch.zeros(ndim, ndim, dtype=torch.float64)
    if ndim == 2:
        turn[0, 1], turn[1, 0] = -angle, angle
    else:
        axis = torch.tensor([0.48, 0.6, 0.64], dtype=torch.float64) * angle
        turn[0, 1], turn[0, 2], turn[1, 2] = -axis[2], axis[1], -axis[0]
        turn = turn - turn.T
    return torch.linalg.matrix_exp(turn)


def oblique(shape: tuple[int, ...], spacing: tuple[float, ...], degrees: float, centre: tuple[float, ...]) -> Grid:
    """A grid about ``centre`` (RAS mm), turned, with its first axis to the left."""
    ndim = len(shape)
    steps = torch.tensor(spacing, dtype=torch.float64)
    steps[0] *= -1
    affine = torch.eye(ndim + 1, dtype=torch.float64)
    affine[:-1, :-1] = rotation(ndim, degrees) * steps
    middle = (torch.tensor(shape, dtype=torch.float64) - 1) / 2
    affine[:-1, -1] = torch.tensor(centre, dtype=torch.float64) - affine[:-1, :-1] @ middle
    return Grid(shape, affine)


def fixed_grid(ndim: int) -> Grid:
    return oblique((24, 30, 17)[:ndim], (1.5, 1.0, 2.25)[:ndim], 12.0, (3.0, -5.0, 7.0)[:ndim])


def moving_grid(ndim: int) -> Grid:
    return oblique((33, 21, 26)[:ndim], (1.0, 1.75, 1.25)[:ndim], -20.0, (1.0, -4.0, 9.0)[:ndim])


def centres(grid: Grid) -> Tensor:
    """World places of the voxels, ``(*shape, D)``."""
    axes = [torch.arange(n, dtype=torch.float64) for n in grid.shape]
    return grid.to_world(torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1))


def ramp(grid: Grid) -> Tensor:
    """A linear function of the world, which linear interpolation keeps: ``(1, 2, *shape)``, two channels."""
    world = centres(grid)
    slope = torch.tensor([2.0, -3.0, 0.5], dtype=torch.float64)[: grid.ndim]
    return torch.stack([100 + world @ slope, world[..., 0]])[None].float()


def waves(grid: Grid) -> Tensor:
    """A smooth function of the world with values from 0 to 100, ``(1, 1, *shape)``."""
    phase = centres(grid) / torch.tensor([5.0, 7.0, 6.0], dtype=torch.float64)[: grid.ndim]
    return 50 + 50 * torch.cos(phase).prod(dim=-1)[None, None].float()


def smooth_flow(grid: Grid, millimetres: float = 3.0) -> Tensor:
    """A smooth field in voxels of ``grid``, ``(D, *shape)``, of at most about ``millimetres`` along a world axis."""
    world = centres(grid)
    shift = torch.stack([torch.sin(world.sum(dim=-1) / (9 + 2 * d) + d) for d in range(grid.ndim)])
    return torch.tensordot(torch.linalg.inv(grid.affine[:-1, :-1]), millimetres * shift, dims=1).float()
