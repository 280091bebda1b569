"""A map of the world given by a displacement field."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from regnet import ops
from regnet.spatial.grid import Grid, matrix
from regnet.spatial.resample import warp_image, warp_labels


@dataclass(frozen=True, eq=False)
class Transform:
    """The world map ``x -> x + d(x)``, from the fixed to the moving image; d comes from a field on a grid.

    With ``A`` the grid's affine, ``d(x) = A[:D, :D] @ flow(A^-1 x)``. Between voxels the field is linear; outside the
    grid it goes on as at its edge.

    Args:
        flow: ``(D, *grid.shape)``, voxels of ``grid``; channel ``d`` lies along array axis ``d``.
        grid: usually that of the fixed image.

    Raises:
        ValueError: the field does not have the shape of the grid.
    """

    flow: Tensor = field(repr=False)
    grid: Grid

    def __post_init__(self) -> None:
        if tuple(self.flow.shape) != (self.grid.ndim, *self.grid.shape):
            raise ValueError(
                f"a field on this grid has the shape {(self.grid.ndim, *self.grid.shape)}, got {tuple(self.flow.shape)}"
            )

    @classmethod
    def identity(cls, grid: Grid, device: torch.device | str | None = None) -> "Transform":
        """The map that moves nothing."""
        return cls(torch.zeros((grid.ndim, *grid.shape), device=device), grid)

    def map_points(self, world: Tensor) -> Tensor:
        """Points of the fixed image -> the matching points of the moving image.

        Args:
            world: ``(..., D)``, RAS mm.

        Returns:
            ``(..., D)``, RAS mm, float64.
        """
        world = world.to(self.flow.device, torch.float64)
        voxel = self.grid.to_voxel(world).reshape(-1, self.grid.ndim)
        coords = voxel.T.reshape(1, self.grid.ndim, *(1,) * (self.grid.ndim - 1), -1)
        shift = ops.pull(self.flow[None], coords, order=1, bound="replicate").reshape(self.grid.ndim, -1)
        return world + (self._linear() @ shift.double()).T.reshape(world.shape)

    def displacement_mm(self) -> Tensor:
        """The displacement of every voxel of the grid, ``(D, *spatial)``, RAS mm."""
        return torch.tensordot(self._linear().to(self.flow.dtype), self.flow, dims=1)

    def on(self, grid: Grid) -> "Transform":
        """The same world map, sampled at the voxels of another grid and in its voxels."""
        if grid == self.grid:
            return self
        nowhere = torch.zeros((1, grid.ndim, *grid.shape), dtype=self.flow.dtype, device=self.flow.device)
        here = ops.warp(
            self.flow[None], nowhere, order=1, bound="replicate", matrix=matrix(grid, self.grid).to(nowhere)
        )
        to_new = matrix(self.grid, grid)[0, :, :-1].to(here)
        return Transform(torch.tensordot(to_new, here[0], dims=1), grid)

    def inverse(self) -> "Transform":
        """The map from the moving to the fixed image, on the same grid."""
        return Transform(ops.invert(self.flow[None])[0], self.grid)

    def apply(
        self, image: Tensor, source: Grid, reference: Grid | None = None, order: int = 1, background: float = 0.0
    ) -> Tensor:
        """Bring a moving image to the fixed space, interpolating it once.

        Args:
            image: ``(N, C, *source.shape)``, the moving image on its own grid.
            source: the grid of the moving image.
            reference: the grid of the result; None: that of this transform.
            order: of the spline, 0 to 7.
            background: the value where the moving image was not in view.

        Returns:
            ``(N, C, *reference.shape)``.
        """
        there = self.on(reference or self.grid)
        return warp_image(image, there.flow[None], source, there.grid, order, background)

    def apply_labels(
        self, labels: Tensor, source: Grid, reference: Grid | None = None, mode: str = "nearest", background: int = 0
    ) -> Tensor:
        """As :meth:`apply`, for a label map ``(N, 1, *source.shape)`` of an integer type.

        Args:
            labels, source, reference: as there.
            mode: ``"nearest"``, or ``"linear"``: the label that weighs most among the neighbours.
            background: the label where the moving image was not in view.

        Returns:
            ``(N, 1, *reference.shape)``, type of ``labels``.
        """
        there = self.on(reference or self.grid)
        return warp_labels(labels, there.flow[None], source, there.grid, mode, background)

    def _linear(self) -> Tensor:
        return self.grid.affine[:-1, :-1].to(self.flow.device)


def compose(transforms: Sequence[Transform], grid: Grid) -> Transform:
    """One map for several, sampled at the voxels of a grid.

    Args:
        transforms: in the order of ANTs: a point of the fixed space goes through the first, then the second, and so
            on, so the last touches the moving image first. None at all gives the identity.
        grid: of the result, usually that of the fixed image.

    Raises:
        ValueError: a transform has another number of axes than the grid.
    """
    for transform in transforms:
        if transform.grid.ndim != grid.ndim:
            raise ValueError(f"a {transform.grid.ndim}-D transform does not act on a {grid.ndim}-D grid")
    if len(transforms) == 1:
        return transforms[0].on(grid)
    voxels = ops.identity(grid.shape, dtype=torch.float64)[0].movedim(0, -1)
    points = grid.to_world(voxels)
    for transform in transforms:
        points = transform.map_points(points)
    flow = (grid.to_voxel(points) - voxels).movedim(-1, 0)
    return Transform(flow.to(torch.float32).contiguous(), grid)
