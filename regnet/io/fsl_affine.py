"""FSL's affine matrices, as FLIRT writes them, and its space.

A text file of four rows: moving -> fixed, in FSL's millimetres: voxel times spacing, and the first axis counted from
its other end where the image's affine has a positive determinant (it is "neurological"). So it means nothing without
the two images. Source: FSL's wiki, FLIRT FAQ; the same in fslpy.
"""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from regnet.errors import InputError
from regnet.spatial.affine import Affine
from regnet.spatial.grid import Grid


def millimetres(grid: Grid) -> Grid:
    """FSL's space of an image as a grid: its "voxels" are FSL's millimetres, its affine takes them to RAS."""
    scale = torch.diag(torch.tensor([*grid.spacing, 1.0], dtype=torch.float64))
    if float(torch.linalg.det(grid.affine)) > 0:
        scale[0, -1] = (grid.shape[0] - 1) * scale[0, 0]
        scale[0, 0] *= -1
    return Grid(grid.shape, torch.linalg.solve(scale, grid.affine, left=False))


def read(path: Path, moving: Grid, fixed: Grid) -> Affine:
    """Read FLIRT's matrix.

    Raises:
        InputError: it holds no 4 x 4 numbers, or has no inverse.
    """
    return to_world(read_matrix(path), path, moving, fixed)


def write(path: Path, transform: Affine, moving: Grid, fixed: Grid) -> None:
    """Write FLIRT's matrix."""
    there = torch.linalg.solve(millimetres(moving).affine, transform.matrix @ millimetres(fixed).affine)
    write_matrix(path, torch.linalg.inv(there))


def to_world(matrix: Tensor, path: object, moving: Grid, fixed: Grid) -> Affine:
    """The map fixed -> moving, RAS mm, that FLIRT's matrix moving -> fixed means."""
    if matrix.shape[0] != 4 or moving.ndim != 3 or fixed.ndim != 3:
        raise InputError(f"{path}: FSL's matrices are 4 x 4, of 3-D images")
    try:
        back = torch.linalg.inv(matrix)
        return Affine(millimetres(moving).affine @ back @ torch.linalg.inv(millimetres(fixed).affine))
    except (ValueError, RuntimeError) as error:
        raise InputError(f"{path}: not an affine map ({' '.join(str(error).split())})") from error


def read_matrix(path: Path) -> Tensor:
    """A text file of a square matrix, ``(D + 1, D + 1)``, float64.

    Raises:
        InputError: something else.
    """
    try:
        rows = [line.split() for line in path.read_text(encoding="ascii").splitlines()]
        matrix = np.array([row for row in rows if row], dtype=np.float64)
    except (ValueError, OSError) as error:
        raise InputError(f"{path}: not a text file of a matrix ({' '.join(str(error).split())})") from error
    if matrix.shape not in ((3, 3), (4, 4)) or not np.isfinite(matrix).all():
        raise InputError(f"{path}: a finite matrix of 4 x 4 (2-D: 3 x 3) is needed, got {matrix.shape}")
    return torch.from_numpy(matrix)


def write_matrix(path: Path, matrix: Tensor) -> None:
    """Write a matrix as text, with all its digits."""
    rows = ["  ".join(f"{value:.17g}" for value in row) for row in matrix.tolist()]
    path.write_text("\n".join(rows) + "\n", encoding="ascii")
