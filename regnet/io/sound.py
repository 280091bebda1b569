"""Numbers in headers and files that cannot be meant, or that float32 does not hold."""

from collections.abc import Sequence

import numpy as np
import torch

from regnet.errors import InputError
from regnet.spatial.composite import Composite
from regnet.spatial.displacement import Displacement
from regnet.spatial.ffd import FFD
from regnet.spatial.grid import Grid
from regnet.spatial.transform import Transform

# Headers and fields keep places as float32, whose neighbours lie this far apart, relatively; so that two voxels are
# told apart to a tenth of one, as where headers are compared, there may be so many of them between origin and voxel.
_APART = 2.0**-23
_MOST_VOXELS = 0.1 / _APART


def usable_grid(shape: Sequence[int], affine: torch.Tensor, name: object) -> Grid:
    """The grid that a header describes.

    Raises:
        InputError: there is no such grid, or :func:`check_place` refuses it.
    """
    try:
        grid = Grid(tuple(shape), affine)
    except ValueError as error:
        raise InputError(f"{name}: unusable geometry ({error})") from error
    check_place(grid, name)
    return grid


def check_place(grid: Grid, name: object) -> None:
    """Refuse a grid so far from the origin that float32 does not tell its voxels apart.

    Raises:
        InputError: it lies there.
    """
    steps = [step for size, step in zip(grid.shape, grid.spacing, strict=True) if size > 1]
    far = float(grid.to_world(grid.outer_corners()).abs().max())
    if steps and far > _MOST_VOXELS * min(steps):
        raise InputError(
            f"{name}: unusable geometry (it lies {far:.2g} mm from the origin, where float32, in which files keep "
            f"places, does not tell voxels of {min(steps):.2g} mm apart); mend the offset in its header"
        )


def check_fields(transform: Transform, name: object) -> None:
    """Refuse a transform with a field that leads further than float32 tells voxels apart, or lies there.

    Raises:
        InputError: it has.
    """
    for part in transform.parts if isinstance(transform, Composite) else (transform,):
        if part.home is not None:
            check_place(part.home, name)
        values = part.flow if isinstance(part, Displacement) else part.control if isinstance(part, FFD) else None
        most = 0.0 if values is None else max(abs(float(end)) for end in torch.aminmax(values))
        if not most <= _MOST_VOXELS:
            raise InputError(f"{name}: leads up to {most:.2g} voxels away; such a field is damaged, or of another kind")


def check_float32(numbers: np.ndarray, taken: np.ndarray, name: object) -> None:
    """Refuse finite numbers that became infinite when they were taken into float32.

    Raises:
        InputError: there are some.
    """
    if numbers.dtype.itemsize > taken.dtype.itemsize and np.isinf(taken).any():
        lost = numbers[np.isinf(taken) & np.isfinite(numbers)]
        if lost.size:
            raise InputError(
                f"{name}: has values up to {np.abs(lost).max():.3g}, which float32 does not hold, in which images are "
                "computed and written; scale it first"
            )
