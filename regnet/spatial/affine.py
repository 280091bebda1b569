"""An affine map of the world."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regnet.spatial.displacement import Displacement
from regnet.spatial.grid import Grid
from regnet.spatial.transform import Transform


@dataclass(frozen=True, eq=False)
class Affine(Transform):
    """The world map ``x -> M x``, from the fixed to the moving image; rigid maps and shifts too.

    Args:
        matrix: ``(D + 1, D + 1)``, RAS mm -> RAS mm, ``D`` 2 or 3. Kept as float64 on the CPU.

    Raises:
        ValueError: another size, entries that are not finite, another last row than 0 ... 0 1, or no inverse.
    """

    matrix: Tensor

    def __post_init__(self) -> None:
        matrix = torch.as_tensor(self.matrix).detach().to("cpu", torch.float64).clone()
        size = matrix.shape[-1] if matrix.ndim == 2 else 0
        if tuple(matrix.shape) not in ((3, 3), (4, 4)):
            raise ValueError(f"an affine map of the world is a matrix of 3 x 3 or 4 x 4, got {tuple(matrix.shape)}")
        if not bool(torch.isfinite(matrix).all()):
            raise ValueError("an affine map must be finite, got NaN or infinity")
        bottom = torch.zeros(size, dtype=torch.float64)
        bottom[-1] = 1
        if not torch.allclose(matrix[-1], bottom, atol=1e-9):
            raise ValueError(f"the last row of an affine map must be {bottom.tolist()}, got {matrix[-1].tolist()}")
        matrix[-1] = bottom
        lengths = matrix[:-1, :-1].norm(dim=0)
        if float(lengths.min()) == 0 or abs(float(torch.linalg.det(matrix[:-1, :-1] / lengths))) < 1e-6:
            raise ValueError("an affine map must have an inverse, got a matrix that flattens the world")
        object.__setattr__(self, "matrix", matrix)

    @classmethod
    def identity(cls, ndim: int) -> Affine:
        """The map that moves nothing."""
        return cls(torch.eye(ndim + 1, dtype=torch.float64))

    @property
    def ndim(self) -> int:
        """Number of axes of the world, 2 or 3."""
        return self.matrix.shape[0] - 1

    def _map_points(self, world: Tensor) -> Tensor:
        matrix = self.matrix.to(world.device)
        return world @ matrix[:-1, :-1].T + matrix[:-1, -1]

    def inverse(self) -> Affine:
        """The exact map from the moving to the fixed image."""
        inverse = torch.linalg.inv(self.matrix)
        inverse[-1] = self.matrix[-1]
        return Affine(inverse)

    def follow(self, flow: Tensor, grid: Grid) -> Tensor:
        """See :meth:`Transform.follow`. In voxels ``p + f -> B (p + f)``, that is ``f -> B f + (B - 1) p``."""
        here = torch.linalg.solve(grid.affine, self.matrix @ grid.affine)
        away = here - torch.eye(grid.ndim + 1, dtype=torch.float64)
        moved = torch.tensordot(here[:-1, :-1].to(flow), flow, dims=1)
        for channel, row in zip(moved, away[:-1], strict=True):
            at = row[-1].to(flow.device)
            for axis, step in enumerate(row[:-1]):
                along = [1] * grid.ndim
                along[axis] = -1
                ramp = step * torch.arange(grid.shape[axis], dtype=torch.float64)
                at = at + ramp.reshape(along).to(flow.device)
            channel += at
        return moved

    def _there(self, reference: Grid) -> Displacement:
        # No field: the voxels themselves lie elsewhere.
        return Displacement.identity(Grid(reference.shape, self.matrix @ reference.affine))
