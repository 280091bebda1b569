"""Vectors (velocities, fibre directions) that move with the image they stand in."""

import torch
from torch import Tensor

from regnet import ops
from regnet.spatial.grid import Grid
from regnet.spatial.transform import Transform

MODES = ("jacobian", "rotation")
_FLAT = 1e-6  # determinant of a map that has no inverse there: vectors stay as they are


def reorient(vectors: Tensor, transform: Transform, grid: Grid, mode: str = "jacobian") -> Tensor:
    """Turn vectors that were resampled from the moving image as the tissue around them turns.

    Args:
        vectors: ``(D, *grid.shape)``, components along RAS, as they are in the moving image.
        transform: the map that resampled them, from fixed to moving.
        grid: where they are now.
        mode: ``"jacobian"``: by the inverse of the map's local Jacobian, so that an arrow between two neighbouring
            points stays one (velocities, displacements); ``"rotation"``: by the rotation nearest to that, which keeps
            lengths (directions of fibres).

    Returns:
        ``(D, *grid.shape)``, components along RAS, in the fixed image.

    Source:
        Alexander et al., IEEE TMI 2001 ("finite strain" is ``"rotation"``).
    """
    # One voxel more all round: no one-sided differences.
    wide = grid.window([-1] * grid.ndim, [n + 2 for n in grid.shape])
    jacobian = ops.jacobian(transform.on(wide).flow[None])[0]
    for axis in range(grid.ndim):
        jacobian = jacobian.narrow(2 + axis, 1, grid.shape[axis])
    linear = grid.affine[:-1, :-1].to(jacobian)
    local = linear @ jacobian.movedim((0, 1), (-2, -1)) @ torch.linalg.inv(linear)
    column = vectors.to(local).movedim(0, -1)[..., None]
    if mode == "rotation":
        left, _, right = torch.linalg.svd(local)
        turned = (left @ right).mT @ column
    else:
        flat = torch.linalg.det(local).abs() < _FLAT
        local[flat] = torch.eye(grid.ndim).to(local)
        turned = torch.linalg.solve(local, column)
    return turned[..., 0].movedim(-1, 0).to(vectors)
