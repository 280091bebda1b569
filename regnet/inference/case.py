"""The files of one pair to be measured, and how they are read."""

import math
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from regnet import ops
from regnet.data.prepare import check_mask, check_same_grid
from regnet.data.table import Pair
from regnet.errors import InputError
from regnet.io import Image, read_image, read_labels, read_transform
from regnet.spatial import Affine, Composite, Displacement, Grid, Transform, chain, matrix

LABELS = ("nearest", "linear", "learn2reg")
_LEARN2REG = re.compile(r"disp(_\d+){2,4}\.(npz|nii|nii\.gz)")  # the names of Learn2Reg's displacement files

_MISSING = 0.01  # share of the fixed image that a field may leave out without a word


@dataclass(frozen=True)
class Case:
    """A pair and the files of its map.

    Attributes:
        pair: a row of the table.
        transforms: the map fixed -> moving, in the order of ANTs: the last touches the moving image first. None at all
            is the identity of the world.
        inverse: the map moving -> fixed, where there is one.
    """

    pair: Pair
    transforms: tuple[Path, ...] = ()
    inverse: Path | None = None

    def files(self) -> Iterator[Path]:
        """Every file that is read."""
        pair = self.pair
        alone = (pair.moving_labels, pair.fixed_labels, pair.moving_mask, pair.fixed_mask, pair.moving_points)
        rest = (pair.fixed_points, pair.true_warp, *self.transforms, self.inverse)
        yield from (path for path in (*pair.moving, *pair.fixed, *alone, *rest) if path is not None)


@dataclass(frozen=True)
class Protocol:
    """What is left to choose.

    Attributes:
        labels: how labels are warped. ``nearest``; ``linear``: the label that weighs most among the neighbours;
            ``learn2reg``: nearest, and 0 beyond the outer voxels' centres, which is half a voxel less than elsewhere.
        space: of the landmarks: ``ras``, ``lps`` (mm), ``voxel`` (from 0) or ``voxel1`` (from 1, as DIR-Lab counts);
            None: as their files say.
    """

    labels: str = "nearest"
    space: str | None = None


def read_map(paths: Sequence[Path], moving: Grid, fixed: Image) -> tuple[Displacement, float]:
    """The map of some files at the voxels of the fixed image, and how much the affine maps among them enlarge."""
    if not paths:
        return Displacement.identity(fixed.grid), 1.0
    transform = chain([_read(path, moving, fixed) for path in paths])
    parts = transform.parts if isinstance(transform, Composite) else (transform,)
    volume = math.prod(float(part.matrix.det()) for part in parts if isinstance(part, Affine))
    if isinstance(transform, Displacement) and transform.grid.matches(fixed.grid):
        return Displacement(transform.flow, fixed.grid), volume
    if isinstance(transform, Displacement):
        missing = _beyond(transform.grid, fixed.grid)
        if missing > _MISSING:
            warnings.warn(
                f"{paths[0]}: does not reach {100 * missing:.0f} % of {fixed.name}; nothing moves there. Is it the "
                "field of another pair?",
                stacklevel=2,
            )
    return transform.on(fixed.grid), volume


def _beyond(field: Grid, fixed: Grid) -> float:
    """Which share of the fixed grid's voxels lies outside the voxels of a field's."""
    rows = matrix(fixed, field)[0]
    at = ops.identity(fixed.shape, dtype=torch.float64)[0]
    beyond = torch.zeros(fixed.shape, dtype=torch.bool)
    for row, size in zip(rows, field.shape, strict=True):
        coordinate = torch.tensordot(row[:-1], at, dims=1) + row[-1]
        beyond |= (coordinate < -0.5) | (coordinate > size - 0.5)
    return float(beyond.double().mean())


def _read(path: Path, moving: Grid, fixed: Image) -> Transform:
    source = "learn2reg" if _LEARN2REG.fullmatch(path.name) else None
    transform = read_transform(path, source, moving, fixed.grid)
    if transform.ndim != fixed.grid.ndim:
        raise InputError(f"{path}: is {transform.ndim}-D, but {fixed.name} is {fixed.grid.ndim}-D")
    return transform


def read_label_map(path: Path, image: Image) -> Image:
    """A label map on the voxels of its image."""
    labels = read_labels(path)
    check_same_grid(labels, image.grid, image.name)
    return labels


def read_mask(path: Path | None, image: Image) -> Tensor | None:
    """A mask on the voxels of its image, ``(1, 1, *spatial)``."""
    if path is None:
        return None
    mask = read_image(path)
    check_same_grid(mask, image.grid, image.name)
    check_mask(mask)
    return mask.data[None] > 0
