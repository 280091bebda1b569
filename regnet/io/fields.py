"""What the formats of fields share: vectors in a NIfTI file, and the displacement they mean."""

import math
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import torch
from torch import Tensor

from regnet import ops
from regnet.errors import InputError
from regnet.io import gz
from regnet.io.atomic import atomic_path
from regnet.io.image import Image
from regnet.io.nifti import affine_mm, embed, load_numbers, open_volume, says_place, set_geometry
from regnet.io.sound import usable_grid
from regnet.spatial.displacement import Displacement
from regnet.spatial.grid import Grid

SUFFIXES = (".nii", ".nii.gz")
_PART = 1 << 20  # voxels


def is_field(shape: tuple[int, ...]) -> bool:
    """Whether vectors lie so in a file: ``(X, Y, Z, 1, 3)``, ``(X, Y, Z, 3)``, or ``(X, Y, 1, 1, 2)``."""
    return (len(shape) == 5 and shape[3:] == (1, 3)) or (len(shape) == 4 and shape[3] == 3) or shape[2:] == (1, 1, 2)


def vectors(image: Any, path: Path) -> tuple[Tensor, Grid]:
    """The vectors of an open file and where they lie.

    Args:
        image: of nibabel, as :func:`regnet.io.nifti.open_volume` gives it.
        path: for messages.

    Returns:
        ``(D, *spatial)``, float32, as they stand in the file, and the file's grid.

    Raises:
        InputError: another shape, damaged, not finite, or an unusable affine.
    """
    shape = tuple(int(n) for n in image.shape)
    if not is_field(shape):
        raise InputError(f"{path}: a field has the shape (X, Y, Z, 1, 3), (X, Y, Z, 3) or (X, Y, 1, 1, 2), got {shape}")
    ndim = shape[-1]
    affine = torch.from_numpy(affine_mm(image, path))
    if ndim == 2:
        affine = affine[[0, 1, 3]][:, [0, 1, 3]]
    grid = usable_grid(shape[:ndim], affine, path)
    numbers = np.moveaxis(load_numbers(image, path, np.float32).reshape(*grid.shape, ndim), -1, 0)
    found = torch.from_numpy(np.ascontiguousarray(numbers))
    if not all(math.isfinite(end) for end in torch.aminmax(found)):
        raise InputError(f"{path}: the field has values that are NaN or infinite")
    return found, grid


def open_nifti(path: Path) -> Any:
    """The open file.

    Raises:
        InputError: missing, damaged, or not NIfTI.
    """
    image = open_volume(path)
    if not isinstance(image, nib.Nifti1Image):
        raise InputError(f"{path}: not a NIfTI file; a field is needed")
    return image


def from_mm(mm: Tensor, grid: Grid, outside: str, lps: bool = False) -> Displacement:
    """The map that adds the vectors ``(D, *grid.shape)`` at the voxels of a grid.

    Args:
        mm: along RAS, or along LPS; overwritten, in parts, since a field is large.
        grid: where they lie.
        outside: as :class:`Displacement`.
        lps: whether they are along LPS.
    """
    to_voxel = torch.linalg.inv(grid.affine[:-1, :-1]).to(mm.dtype)
    if lps:
        to_voxel[:, :2] *= -1
    flow = mm.contiguous()
    for part in flow.flatten(1).split(_PART, dim=1):
        part.copy_(to_voxel @ part)
    return Displacement(flow, grid, outside)


def from_places(there: Tensor, space: Grid, grid: Grid, outside: str = "edge") -> Displacement:
    """The map that takes the voxels of a grid to the places ``(D, *grid.shape)``.

    Args:
        there: where they go, in voxels of ``space``.
        space: of the places; for RAS mm a grid of the identity affine.
        grid: whose voxels they are.
        outside: as :class:`Displacement`.
    """
    # In float64, a channel at a time: places are large, displacements small.
    back = torch.linalg.solve(grid.affine, space.affine)[:-1]
    start = ops.identity(grid.shape)[0]
    flow = [
        (sum((w * c.double() for w, c in zip(row[:-1], there, strict=True)), start=row[-1] - begin.double())).float()
        for row, begin in zip(back, start, strict=True)
    ]
    return Displacement(torch.stack(flow), grid, outside)


def places(field: Displacement, space: Grid) -> Tensor:
    """Where a field takes the voxels of its grid, ``(D, *grid.shape)``, float32, in voxels of ``space``."""
    to_space = torch.linalg.solve(space.affine, field.grid.affine)
    at = ops.identity(field.grid.shape)[0].double() + field.flow.detach().cpu()
    there = torch.tensordot(to_space[:-1, :-1], at, dims=1)
    return (there + to_space[:-1, -1].reshape(-1, *[1] * field.ndim)).float()


def world(ndim: int) -> Grid:
    """The space whose voxels are RAS millimetres."""
    return Grid((1,) * ndim, torch.eye(ndim + 1))


def write_vectors(
    path: Path,
    field: Tensor,
    grid: Grid,
    like: Image | Grid | None,
    overwrite: bool,
    intent: tuple[int, float, str],
    flat: bool = False,
) -> None:
    """Write vectors as they stand, float32, in the shape ``(X, Y, Z, 1, 3)`` or ``(X, Y, 1, 1, 2)``.

    Args:
        path: ``.nii`` or ``.nii.gz``; folders are made.
        field: ``(D, *grid.shape)``.
        grid: where they lie.
        like: an image whose sform and qform codes the file gets.
        overwrite: whether an existing file may be replaced.
        intent: NIfTI's intent: code, first parameter, name.
        flat: in the shape ``(X, Y, Z, 3)``.

    Raises:
        InputError: a name that is not NIfTI's, or an existing file without ``overwrite``.
    """
    if not path.name.lower().endswith(SUFFIXES):
        raise InputError(f"{path}: a displacement field is written as .nii or .nii.gz")
    ndim = grid.ndim
    array = np.moveaxis(field.detach().cpu().float().numpy(), 0, -1)
    array = array if flat and ndim == 3 else array.reshape(*grid.shape, *(1,) * (4 - ndim), ndim)
    affine = embed(grid)
    image = nib.Nifti1Image(array, affine)
    header: Any = image.header
    header["intent_code"], header["intent_p1"], header["intent_name"] = intent
    # A fixed image whose codes are both 0 leaves the place to the reader's guess; a field says where it lies.
    codes = like.header if isinstance(like, Image) and says_place(like.header) else None
    set_geometry(header, affine, codes)
    with atomic_path(path, overwrite) as temporary:
        gz.save(image, temporary)
