"""Displacement fields as ITK and ANTs keep them.

A NIfTI file of shape ``(X, Y, Z, 1, 3)``, float32, intent 1007 (vector): at each voxel of the fixed image, the way in
LPS millimetres to the matching place in the moving image. 2-D: ``(X, Y, 1, 1, 2)``. Voxels are used inside regnet.
"""

from pathlib import Path

import torch
from torch import Tensor

from regnet.errors import InputError
from regnet.io.fields import SUFFIXES, from_mm, open_nifti, vectors, write_vectors
from regnet.io.image import Image
from regnet.io.itk import to_lps, upright
from regnet.io.sound import check_fields
from regnet.spatial.displacement import Displacement
from regnet.spatial.grid import Grid
from regnet.spatial.transform import Transform

__all__ = ["SUFFIXES", "read", "read_displacement", "write", "write_displacement"]

VECTOR = 1007  # components along the axes of ITK: LPS
DISPLACEMENT = 1006  # components along the axes of NIfTI: RAS; ITK flips them when it reads


def read(path: Path, sure: bool = False) -> Displacement:
    """Read a displacement field as the world map it means to ITK: the identity outside its grid.

    Args:
        path: ``.nii`` or ``.nii.gz``, intent 1007 (LPS mm, as ITK and ANTs write) or 1006 (RAS mm).
        sure: take any other intent for 1007.

    Raises:
        InputError: the file is missing or damaged, of another shape or intent, or has values that are not finite.
    """
    image = open_nifti(path)
    shape = tuple(int(n) for n in image.shape)
    if not sure and len(shape) != 5:
        raise InputError(f"{path}: a displacement field has the shape (X, Y, Z, 1, 3) or (X, Y, 1, 1, 2), got {shape}")
    components, grid = vectors(image, path)
    intent = int(image.header["intent_code"])
    if intent not in (VECTOR, DISPLACEMENT) and not sure:
        raise InputError(
            f"{path}: intent {intent} does not say which way the components point; "
            f"{VECTOR} (LPS mm, ITK and ANTs) or {DISPLACEMENT} (RAS mm) is needed"
        )
    return from_mm(components, grid, outside="identity", lps=intent != DISPLACEMENT)


def write(path: Path, transform: Transform, like: Image | Grid | None, overwrite: bool) -> None:
    """Write a transform as one field that ITK and ANTs read as it is.

    Args:
        path: ``.nii`` or ``.nii.gz``; folders are made.
        transform: a field is written on its own grid, everything else on ``like``, else on its own.
        like: an image also gives its sform and qform codes. A sheared grid, which ITK cannot read, is replaced by an
            upright one over the same field of view.
        overwrite: whether an existing file may be replaced.

    Raises:
        InputError: a name that is not NIfTI's, an existing file without ``overwrite``, or no grid to write on.
    """
    grid = on_which(path, transform, like)
    field = transform.on(upright(grid, path))
    write_vectors(path, to_lps(field.displacement_mm()), field.grid, like, overwrite, (VECTOR, 0.0, ""))


def on_which(path: Path, transform: Transform, like: Image | Grid | None) -> Grid:
    """The grid to sample a transform on: a field's own, else that of ``like``, else its own.

    Raises:
        InputError: there is none.
    """
    grid = like.grid if isinstance(like, Image) else like
    grid = transform.grid if isinstance(transform, Displacement) else grid or transform.home
    if grid is None:
        raise InputError(f"{path}: this transform has no grid of its own; say on which image's grid it is wanted")
    return grid


def read_displacement(path: str | Path) -> tuple[Tensor, Tensor]:
    """Read a displacement field.

    Args:
        path: ``.nii`` or ``.nii.gz`` of shape ``(X, Y, Z, 1, 3)`` or ``(X, Y, 1, 1, 2)`` with intent 1007 (components
            in LPS mm, as ITK and ANTs write) or 1006 (RAS mm).

    Returns:
        The field ``(D, *spatial)``, float32, in voxels of its own grid, from fixed to moving, and the grid's affine
        ``(D + 1, D + 1)``, float64, voxel -> RAS mm.

    Raises:
        InputError: the file is missing or damaged, of another shape or intent, or has values that are not finite.
    """
    field = read(Path(path))
    check_fields(field, path)
    return field.flow, field.grid.affine


def write_displacement(path: str | Path, flow: Tensor, affine: Tensor) -> None:
    """Write a displacement field that ITK and ANTs read as it is.

    Args:
        path: ``.nii`` or ``.nii.gz``; folders are made.
        flow: ``(D, *spatial)``, voxels of the grid it lives on, from fixed to moving.
        affine: ``(D + 1, D + 1)``, voxel -> RAS mm.

    Raises:
        ValueError: shapes that do not belong together.
        InputError: a name that is not NIfTI's.
    """
    flow = torch.as_tensor(flow)
    if flow.shape[0] != flow.ndim - 1:
        raise ValueError(f"a field needs one channel per spatial axis, (D, *spatial), got {tuple(flow.shape)}")
    grid = Grid(tuple(flow.shape[1:]), torch.as_tensor(affine))
    write(Path(path), Displacement(flow, grid), None, overwrite=True)
