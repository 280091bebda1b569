"""A map of the world given by a stationary velocity field."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from torch import Tensor

from regnet import ops
from regnet.spatial.displacement import Displacement
from regnet.spatial.grid import Grid
from regnet.spatial.transform import Transform


@dataclass(frozen=True, eq=False)
class Velocity(Transform):
    """The world map that a particle makes in unit time; the inverse is that of the reversed velocity, and no search.

    Args:
        velocity: ``(D, *grid.shape)``, voxels of ``grid`` per unit time. Outside the grid it goes on as at its edge.
        grid: usually that of the fixed image, or a coarser one.
        steps: squarings of the exponential.

    Raises:
        ValueError: the field does not have the shape of the grid, or ``steps`` is negative.
    """

    velocity: Tensor = field(repr=False)
    grid: Grid
    steps: int = 7

    def __post_init__(self) -> None:
        Displacement(self.velocity, self.grid)  # refuses another shape
        if self.steps < 0:
            raise ValueError(f"steps must be 0 or more, got {self.steps}")

    @cached_property
    def displacement(self) -> Displacement:
        """Where the particles are at time 1, on the velocity's own grid."""
        return Displacement(ops.integrate(self.velocity[None], self.steps, bound="replicate")[0], self.grid)

    @property
    def ndim(self) -> int:
        """Number of axes of the world, 2 or 3."""
        return self.grid.ndim

    @property
    def home(self) -> Grid:
        """The velocity's grid."""
        return self.grid

    def _map_points(self, world: Tensor) -> Tensor:
        return self.displacement.map_points(world)

    def inverse(self) -> Velocity:
        """The map from the moving to the fixed image: the velocity the other way."""
        return Velocity(-self.velocity, self.grid, self.steps)

    def on(self, grid: Grid) -> Displacement:
        """The same world map, sampled at the voxels of a grid and in its voxels."""
        return self.displacement.on(grid)

    def follow(self, flow: Tensor, grid: Grid) -> Tensor:
        """See :meth:`Transform.follow`."""
        return self.displacement.follow(flow, grid)
