"""NIfTI and MGH files below the level of images: opening them, and where their voxels lie."""

import gzip
import warnings
import zlib
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from nibabel.filebasedimages import ImageFileError
from nibabel.spatialimages import HeaderDataError

from regnet.errors import InputError
from regnet.spatial.grid import Grid

# Millimetres per unit of the affine, by the spatial code of xyzt_units; without a unit, millimetres are meant.
_MILLIMETRES = {"meter": 1000.0, "micron": 1e-3}
_READ_ERRORS = (OSError, EOFError, ValueError, zlib.error, ImageFileError, HeaderDataError)


def open_volume(path: Path) -> Any:
    """The nibabel image of ``path``, its numbers not yet read.

    Raises:
        InputError: the file is missing, empty, or not an image.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if not path.is_file():
        raise InputError(f"{path}: is not a file")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty")
    try:
        image: Any = nib.load(path)
        if path.name.lower().endswith((".gz", ".mgz")):
            # gzip compares its checksum only at the end of the file, so read to there.
            image = type(image).from_bytes(gzip.decompress(path.read_bytes()))
    except _READ_ERRORS as error:
        raise InputError(f"{path}: truncated, damaged or not an image ({_line(error)})") from error
    return image


def load_numbers(image: Any, name: object, dtype: Any = None) -> np.ndarray:
    """The voxels of a nibabel image, called ``name`` in messages, scaled, as ``dtype`` (None: as they come).

    Raises:
        InputError: the file ends early or is damaged.
    """
    try:
        array = np.asanyarray(image.dataobj) if dtype is None else image.dataobj.__array__(dtype)
    except _READ_ERRORS as error:
        raise InputError(f"{name}: truncated or damaged ({_line(error)})") from error
    return array


def affine_mm(image: Any, name: object) -> np.ndarray:
    """The 4x4 affine, voxel -> RAS mm, of a nibabel image, by one rule for every file.

    sform, else qform, else (both codes 0) what nibabel makes of the shape and zooms, with a warning.
    """
    header = image.header
    if not says_place(header):
        warnings.warn(
            f"{name}: has neither sform nor qform; taken as LAS about its centre (other software may differ)",
            stacklevel=2,
        )
    return _millimetres(header) @ np.asarray(image.affine, dtype=np.float64)


def best_affine(header: Any) -> np.ndarray:
    """The 4x4 affine of a header, voxel -> RAS mm: sform, else qform, else what nibabel makes of shape and zooms."""
    return _millimetres(header) @ np.asarray(header.get_best_affine(), dtype=np.float64)


def in_plane(affine: np.ndarray) -> np.ndarray:
    """The 3x3 affine of a slice: lengths and angles of its plane, seen along the two world axes nearest to it."""
    plane = affine[:3, :2]
    normal = np.cross(plane[:, 0], plane[:, 1])
    rows = [axis for axis in range(3) if axis != int(np.argmax(np.abs(normal)))]
    flat = np.eye(3)
    flat[:2, 2] = affine[rows, 3]
    if np.allclose(np.delete(normal, rows) ** 2, normal @ normal, rtol=1e-6):
        flat[:2, :2] = plane[rows]  # the plane lies along the world axes: nothing to flatten
        return flat
    values, vectors = np.linalg.eigh(plane.T @ plane)
    stretch = vectors @ np.diag(np.sqrt(values)) @ vectors.T
    left, _, right = np.linalg.svd(plane[rows] @ np.linalg.inv(stretch))
    flat[:2, :2] = left @ right @ stretch
    return flat


def embed(grid: Grid) -> np.ndarray:
    """The 4x4 affine of a file on ``grid``; a 2-D grid becomes the axial plane at height 0."""
    affine = np.eye(4)
    affine[: grid.ndim, : grid.ndim] = grid.affine[:-1, :-1].numpy()
    affine[: grid.ndim, 3] = grid.affine[:-1, -1].numpy()
    return affine


def says_place(header: Any) -> bool:
    """Whether a header tells where its voxels lie: False for NIfTI with sform and qform codes both 0."""
    return not isinstance(header, nib.Nifti1Header) or bool(header["sform_code"]) or bool(header["qform_code"])


def set_geometry(header: Any, affine: np.ndarray, like: Any = None) -> None:
    """Give a NIfTI header one affine in sform and qform, with the codes of ``like`` (a header) where it has any."""
    sform, qform = (int(like["sform_code"]), int(like["qform_code"])) if isinstance(like, nib.Nifti1Header) else (1, 1)
    header.set_xyzt_units("mm")
    if not sform and not qform:
        # Both codes 0 in the file of `like`. Where its shape and zooms say the same place, stay as silent as it.
        silent = np.allclose(_millimetres(like) @ like.get_base_affine(), affine, atol=1e-4)
        sform = qform = 0 if silent else 1
    header.set_qform(affine, qform)
    header.set_sform(affine, sform)
    if qform and not np.allclose(header.get_qform(), affine, atol=1e-3 * np.abs(affine[:3, :3]).max()):
        # A quaternion holds no shear: leave the sform to say it alone.
        header.set_sform(affine, sform or qform)
        header["qform_code"] = 0


def _millimetres(header: Any) -> np.ndarray:
    unit = header.get_xyzt_units()[0] if isinstance(header, nib.Nifti1Header) else "mm"
    scale = _MILLIMETRES.get(unit, 1.0)
    return np.diag([scale, scale, scale, 1.0])


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
