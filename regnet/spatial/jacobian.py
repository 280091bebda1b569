"""How a map of the world changes volumes."""

import torch
from torch import Tensor

from regnet import ops
from regnet.spatial.affine import Affine
from regnet.spatial.composite import Composite
from regnet.spatial.grid import Grid
from regnet.spatial.transform import Transform


def determinant(transform: Transform, grid: Grid, total: bool = True) -> Tensor:
    """The determinant of a map's Jacobian at the voxels of a grid, ``(1, *grid.shape)``; negative where it folds.

    Args:
        transform: fixed -> moving; sampled on the grid and differentiated as :func:`regnet.ops.jacobian_determinant`.
        grid: usually the fixed image's.
        total: with the affine parts of a chain. Each multiplies the determinant by a number, so that they are left
            out by dividing, wherever in the chain they stand.
    """
    values = ops.jacobian_determinant(transform.on(grid).flow[None])[0]
    if total:
        return values
    parts = transform.parts if isinstance(transform, Composite) else (transform,)
    linear = [torch.linalg.det(part.matrix) for part in parts if isinstance(part, Affine)]
    return values / float(torch.stack(linear).prod()) if linear else values
