"""The inverse of any map, on any grid."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regnet import ops
from regnet.spatial.affine import Affine
from regnet.spatial.composite import Composite
from regnet.spatial.displacement import Displacement
from regnet.spatial.grid import Grid, matrix
from regnet.spatial.points import unmap_points
from regnet.spatial.transform import Transform
from regnet.spatial.velocity import Velocity

_EDGE = 0.54  # voxels from the outer centres: a hair before a field ends, where a search from beyond gets stuck
_SLAB = 1 << 21  # voxels at a time
_POINTS = 1 << 18  # of those that are solved for one by one
_STEPS, _FEW = 6, 1e-2  # steps of whole slabs, until so few voxels are left


@dataclass(frozen=True)
class Inverse:
    """An inverse and what it misses.

    Attributes:
        transform: the map back, on the grid that was asked for.
        residual: ``(1, *grid.shape)``, mm: how far forward after back ends from where it began.
        found: ``(1, *grid.shape)``, bool: where that is within the tolerance. Elsewhere the map folds, or comes from
            beyond a border at which its field ends.
        leaves: ``(1, *grid.shape)``, bool: what comes from beyond the grid of the map's field, where programs differ:
            for ITK there is no displacement.
    """

    transform: Displacement
    residual: Tensor
    found: Tensor
    leaves: Tensor


def invert(
    transform: Transform, grid: Grid, iterations: int = 60, tolerance: float = 1e-3, start: Transform | None = None
) -> Inverse:
    """Invert a map at the voxels of a grid, usually the moving image's.

    From a rough inverse it goes ``v -> v - J r`` at every voxel where that helps: ``r`` is what the forward map still
    misses, ``J`` the Jacobian of the inverse so far, which is that of the forward map inverted. The voxels that this
    leaves are solved for one by one (:func:`regnet.spatial.unmap_points`). It is done slab by slab, so that a large
    grid costs little more memory than its inverse.

    Args:
        transform: fixed -> moving.
        grid: where the inverse is wanted.
        iterations: of Newton's method, at most, at the voxels that are left.
        tolerance: in voxels of ``grid``.
        start: a map near the inverse; None: the parts turned round.

    Raises:
        ValueError: the grid has another number of axes.
    """
    start = roughly(transform) if start is None else start
    parts = []
    for slab in grid.slabs(_SLAB):
        part = _Part(transform, slab, start.on(slab).flow)
        part.improve(tolerance)
        part.solve(iterations, tolerance)
        parts.append(part)
    flow, missing, distance = (
        torch.cat([getattr(part, name) for part in parts], dim=-1) for name in ("flow", "missing", "distance")
    )
    residual = Displacement(missing, grid).displacement_mm().norm(dim=0, keepdim=True)
    leaves = torch.cat([part.leaves() for part in parts], dim=-1)
    return Inverse(Displacement(flow, grid), residual, distance <= tolerance, leaves)


class _Part:
    """The best inverse so far at every voxel of a slab, what forward after it misses, and by how much."""

    def __init__(self, transform: Transform, grid: Grid, flow: Tensor) -> None:
        self.transform, self.grid, self.flow = transform, grid, flow
        self.missing = transform.follow(flow, grid)
        self.distance = self.missing.norm(dim=0, keepdim=True)

    def improve(self, tolerance: float) -> None:
        """Some of Newton's steps, halved where they do not help."""
        step = torch.ones_like(self.distance)
        for _ in range(_STEPS):
            if float((self.distance > tolerance).float().mean()) < _FEW:
                break
            change = torch.einsum("ij...,j...->i...", ops.jacobian(self.flow[None])[0], self.missing)
            flow = self.flow - step * change
            missing = self.transform.follow(flow, self.grid)
            distance = missing.norm(dim=0, keepdim=True)
            better = distance < self.distance
            self.flow, self.missing = torch.where(better, flow, self.flow), torch.where(better, missing, self.missing)
            self.distance = torch.where(better, distance, self.distance)
            step = torch.where(better, torch.ones_like(step), step / 2)

    def solve(self, iterations: int, tolerance: float) -> None:
        """Go on at the voxels that have not arrived, and only there."""
        mm = tolerance * min(self.grid.spacing)
        every = slice(None)
        for voxels in (self.distance > tolerance)[0].nonzero().split(_POINTS):
            at, of = tuple(voxels.T), (every, *voxels.T)
            world, flow = self.grid.to_world(voxels), self.flow[of]
            begin = self.grid.to_world(voxels + flow.T)
            found, _ = unmap_points(self.transform, world, iterations, mm, begin)
            missing = (self.grid.to_voxel(self.transform.map_points(found)) - voxels).T
            distance = missing.norm(dim=0)
            better = distance < self.distance[0][at]
            back = (self.grid.to_voxel(found) - voxels).T
            self.flow[of] = torch.where(better, back.to(flow), flow)
            self.missing[of] = torch.where(better, missing.to(flow), self.missing[of])
            self.distance[0][at] = torch.where(better, distance.to(flow), self.distance[0][at])

    def leaves(self) -> Tensor:
        """What comes from beyond the field's grid, ``(1, *grid.shape)``."""
        home, beyond = self.transform.home, torch.zeros_like(self.distance, dtype=torch.bool)
        if home is None:
            return beyond
        to_home = matrix(self.grid, home)[0].to(self.flow)
        at = torch.tensordot(to_home[:, :-1], ops.identity(self.grid.shape)[0].to(self.flow) + self.flow, dims=1)
        for place, shift, size in zip(at, to_home[:, -1], home.shape, strict=True):
            beyond |= (place + shift < -_EDGE) | (place + shift > size - 1 + _EDGE)
        return beyond


def roughly(transform: Transform) -> Transform:
    """Something near the inverse that costs nothing: displacements turned round."""
    if isinstance(transform, Composite):
        return Composite(tuple(roughly(part) for part in reversed(transform.parts)))
    if transform.home is None or isinstance(transform, Affine | Velocity):
        return transform.inverse()
    field = transform.on(transform.home)
    return replace(field, flow=-field.flow)
