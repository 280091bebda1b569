"""The inverse of any map, on any grid."""

import warnings
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regnet import ops
from regnet.spatial.affine import Affine
from regnet.spatial.composite import Composite
from regnet.spatial.displacement import Displacement
from regnet.spatial.grid import Grid
from regnet.spatial.transform import Transform
from regnet.spatial.velocity import Velocity


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

    From a rough inverse it goes ``v -> v - J r`` at every voxel where that helps: ``r`` is what the forward map still
    misses, ``J`` the Jacobian of the inverse so far, which is that of the forward map inverted. Where that does not
    arrive, it starts again from the parts' own inverses, which are searched for with more care.

    Args:
        transform: fixed -> moving.
        grid: where the inverse is wanted.
        iterations: at most so many steps from either start.
        tolerance: in voxels of ``grid``.

    Raises:
        ValueError: the grid has another number of axes.
    """
    state = _State(transform, grid, _roughly(transform).on(grid).flow)
    state.improve(iterations, tolerance)
    if not state.arrived(tolerance):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a field's own inverse says where it folds; so do we
            state.offer(transform.inverse().on(grid).flow)
        state.improve(iterations, tolerance)
    residual = Displacement(state.missing, grid).displacement_mm().norm(dim=0, keepdim=True)
    return Inverse(Displacement(state.flow, grid), residual, state.distance <= tolerance)


class _State:
    """The best inverse so far at every voxel, what forward after it misses, and by how much."""

    def __init__(self, transform: Transform, grid: Grid, flow: Tensor) -> None:
        self.transform, self.grid, self.flow = transform, grid, flow
        self.missing = transform.follow(flow, grid)
        self.distance = self.missing.norm(dim=0, keepdim=True)

    def arrived(self, tolerance: float) -> bool:
        return bool((self.distance <= tolerance).all())

    def offer(self, flow: Tensor) -> Tensor:
        """Take ``flow`` where it misses less, and say where."""
        missing = self.transform.follow(flow, self.grid)
        distance = missing.norm(dim=0, keepdim=True)
        better = distance < self.distance
        self.flow, self.missing = torch.where(better, flow, self.flow), torch.where(better, missing, self.missing)
        self.distance = torch.where(better, distance, self.distance)
        return better

    def improve(self, iterations: int, tolerance: float) -> None:
        """Newton's steps, halved where they do not help."""
        step = torch.ones_like(self.distance)
        for _ in range(iterations):
            if self.arrived(tolerance):
                break
            jacobian = ops.jacobian(self.flow[None])[0]
            change = torch.einsum("ij...,j...->i...", jacobian, self.missing)
            better = self.offer(self.flow - step * change)
            step = torch.where(better, torch.ones_like(step), step / 2)


def _roughly(transform: Transform) -> Transform:
    """An inverse that costs nothing: the displacement turned round."""
    if isinstance(transform, Composite):
        return Composite(tuple(_roughly(part) for part in reversed(transform.parts)))
    if transform.home is None or isinstance(transform, Affine | Velocity):
        return transform.inverse()
    field = transform.on(transform.home)
    return replace(field, flow=-field.flow)
