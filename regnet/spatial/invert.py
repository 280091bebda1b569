"""The inverse of any map, on any grid."""

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from regnet import ops
from regnet.spatial.displacement import Displacement
from regnet.spatial.grid import Grid
from regnet.spatial.transform import Transform


@dataclass(frozen=True)
class Inverse:
    """An inverse and what it misses.

    Attributes:
        transform: the map back, on the grid that was asked for.
        residual: ``(1, *grid.shape)``, mm: how far forward after back ends from where it began.
        found: ``(1, *grid.shape)``, bool: where that is within the tolerance. Elsewhere the map folds, or comes from
            beyond a border at which its field ends.
    """

    transform: Displacement
    residual: Tensor
    found: Tensor


def invert(transform: Transform, grid: Grid, iterations: int = 20, tolerance: float = 1e-3) -> Inverse:
    """Invert a map at the voxels of a grid, usually the moving image's.

    It starts from the parts' own inverses, then goes ``v -> v - J r`` at every voxel where that helps: ``r`` is what
    the forward map still misses, ``J`` the Jacobian of the inverse so far, which is that of the forward map inverted.

    Args:
        transform: fixed -> moving.
        grid: where the inverse is wanted.
        iterations: at most so many steps.
        tolerance: in voxels of ``grid``.

    Raises:
        ValueError: the grid has another number of axes.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a field's own inverse says where it folds; so do we
        flow = transform.inverse().on(grid).flow
    missing = transform.follow(flow, grid)
    distance = missing.norm(dim=0, keepdim=True)
    step = torch.ones_like(distance)
    for _ in range(iterations):
        if not bool((distance > tolerance).any()):
            break
        jacobian = ops.jacobian(flow[None])[0]
        change = (jacobian * missing[None]).sum(1)
        tried = flow - step * change
        left = transform.follow(tried, grid)
        now = left.norm(dim=0, keepdim=True)
        better = now < distance
        flow, missing = torch.where(better, tried, flow), torch.where(better, left, missing)
        distance = torch.where(better, now, distance)
        step = torch.where(better, torch.ones_like(step), step / 2)
    residual = Displacement(missing, grid).displacement_mm().norm(dim=0, keepdim=True)
    return Inverse(Displacement(flow, grid), residual, distance <= tolerance)
