"""How a map of the world changes volumes."""

from dataclasses import replace

import torch
from torch import Tensor

from regnet import ops
from regnet.spatial.affine import Affine
from regnet.spatial.composite import Composite, chain
from regnet.spatial.displacement import Displacement
from regnet.spatial.ffd import FFD
from regnet.spatial.grid import Grid
from regnet.spatial.transform import Transform
from regnet.spatial.velocity import Velocity


def determinant(transform: Transform, grid: Grid, total: bool = True) -> Tensor:
    """The determinant of a map's Jacobian at the voxels of a grid, ``(1, *grid.shape)``; negative where it folds.

    The affine parts count exactly, by :func:`affine_apart`; what is left is sampled on the grid and differentiated as
    :func:`regnet.ops.jacobian_determinant`.

    Args:
        transform: fixed -> moving.
        grid: usually the fixed image's.
        total: with the affine parts of a chain.
    """
    deformation, affine = affine_apart(transform)
    if deformation is None:
        values = torch.ones(1, *grid.shape)
    else:
        values = ops.jacobian_determinant(deformation.on(grid).flow[None])[0]
    return values * float(torch.linalg.det(affine.matrix)) if total else values


def affine_apart(transform: Transform) -> tuple[Transform | None, Affine]:
    """A map as a deformation (None: there is none), then an affine map: ``transform = affine @ deformation``.

    A field ``f`` after an affine map ``M`` is ``M`` after ``M^-1 f M``: the same voxels on a grid that ``M^-1`` moves.
    """
    matrix = torch.eye(transform.ndim + 1, dtype=torch.float64)
    fields: list[Transform] = []
    for part in transform.parts if isinstance(transform, Composite) else (transform,):
        if isinstance(part, Affine):
            matrix = part.matrix @ matrix
        elif isinstance(part, Displacement | Velocity | FFD):
            grid = Grid(part.grid.shape, torch.linalg.solve(matrix, part.grid.affine))
            fields.append(replace(part, grid=grid))
        else:
            fields.append(chain([Affine(matrix), part, Affine(matrix).inverse()]))
    return chain(fields) if fields else None, Affine(matrix)
