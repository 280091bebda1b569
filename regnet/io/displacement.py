"""Displacement fields as ITK and ANTs keep them.

A NIfTI file of shape ``(X, Y, Z, 1, 3)``, float32, intent 1007 (vector): at each voxel of the fixed image, the way in
LPS millimetres to the matching place in the moving image. 2-D: ``(X, Y, 1, 1, 2)``. Voxels are used inside regnet;
the change to LPS happens here alone.
"""

from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import torch
from torch import Tensor

from regnet.errors import InputError
from regnet.io.atomic import atomic_path
from regnet.io.image import Image
from regnet.io.nifti import affine_mm, embed, load_numbers, open_volume, says_place, set_geometry
from regnet.spatial.displacement import Displacement
from regnet.spatial.grid import Grid
from regnet.spatial.transform import Transform

SUFFIXES = (".nii", ".nii.gz")
_VECTOR = 1007  # components along the axes of ITK: LPS
_DISPLACEMENT = 1006  # components along the axes of NIfTI: RAS; ITK flips them when it reads


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
    path = Path(path)
    image = open_volume(path)
    if not isinstance(image, nib.Nifti1Image):
        raise InputError(f"{path}: not a NIfTI file; a displacement field is needed")
    shape = tuple(int(n) for n in image.shape)
    ndim = shape[4] if len(shape) == 5 else 0
    if ndim not in (2, 3) or shape[3] != 1 or (ndim == 2 and shape[2] != 1):
        raise InputError(f"{path}: a displacement field has the shape (X, Y, Z, 1, 3) or (X, Y, 1, 1, 2), got {shape}")
    intent = int(image.header["intent_code"])
    if intent not in (_VECTOR, _DISPLACEMENT):
        raise InputError(
            f"{path}: intent {intent} does not say which way the components point; "
            f"{_VECTOR} (LPS mm, ITK and ANTs) or {_DISPLACEMENT} (RAS mm) is needed"
        )
    affine = torch.from_numpy(affine_mm(image, path))
    if ndim == 2:
        affine = affine[[0, 1, 3]][:, [0, 1, 3]]
    numbers = np.moveaxis(load_numbers(image, path, np.float32).reshape(*shape[:ndim], ndim), -1, 0)
    ras = torch.from_numpy(np.array(numbers, dtype=np.float32, order="C"))
    if intent == _VECTOR:
        ras[:2] *= -1
    if not bool(torch.isfinite(ras).all()):
        raise InputError(f"{path}: the displacement field has values that are NaN or infinite")
    try:
        grid = Grid(shape[:ndim], affine)
    except ValueError as error:
        raise InputError(f"{path}: unusable geometry ({error})") from error
    to_voxel = torch.linalg.inv(grid.affine[:-1, :-1]).to(ras.dtype)
    return torch.tensordot(to_voxel, ras, dims=1), grid.affine


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
    write_transform(path, Displacement(flow, Grid(tuple(flow.shape[1:]), torch.as_tensor(affine))))


def read_transform(path: str | Path) -> Displacement:
    """Read a displacement field as the world map it means to ITK: none outside. Errors: :func:`read_displacement`."""
    flow, affine = read_displacement(path)
    return Displacement(flow, Grid(tuple(flow.shape[1:]), affine), outside="identity")


def write_transform(
    path: str | Path, transform: Transform, like: Image | Grid | None = None, overwrite: bool = True
) -> None:
    """Write a transform as a displacement field on its own grid, or that of ``like`` if it has none.

    Args:
        path: ``.nii`` or ``.nii.gz``; folders are made.
        transform: what to write.
        like: the fixed image: the field gets its sform and qform codes.
        overwrite: whether an existing file may be replaced.

    Raises:
        InputError: a name that is not NIfTI's, or an existing file without ``overwrite``.
    """
    path = Path(path)
    if not path.name.lower().endswith(SUFFIXES):
        raise InputError(f"{path}: a displacement field is written as .nii or .nii.gz")
    grid = transform.home or (like.grid if isinstance(like, Image) else like)
    if grid is None:
        raise InputError(f"{path}: this transform has no grid of its own; say on which image's grid it is wanted")
    field, ndim = transform.on(grid), grid.ndim
    lps = field.displacement_mm().detach().to("cpu", torch.float32).clone()
    lps[:2] *= -1
    array = np.moveaxis(lps.numpy(), 0, -1).reshape(*grid.shape, *(1,) * (4 - ndim), ndim)
    affine = embed(grid)
    image = nib.Nifti1Image(array, affine)
    header: Any = image.header
    header.set_intent(_VECTOR)
    # A fixed image whose codes are both 0 leaves the place to the reader's guess; a field says where it lies.
    codes = like.header if isinstance(like, Image) and says_place(like.header) else None
    set_geometry(header, affine, codes)
    with atomic_path(path, overwrite) as temporary:
        nib.save(image, temporary)
