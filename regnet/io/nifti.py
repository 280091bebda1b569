"""NIfTI and MGH files below the level of images: opening them, and where their voxels lie."""

import gzip
import itertools
import math
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from nibabel import imageglobals
from nibabel.filebasedimages import ImageFileError
from nibabel.spatialimages import HeaderDataError

from regnet.errors import InputError
from regnet.spatial.grid import Grid

# Millimetres per unit of the affine, by the spatial bits of xyzt_units (metre, micron); else millimetres are meant.
_MILLIMETRES = {1: 1000.0, 3: 1e-3}
_SPATIAL_BITS = 7
_READ_ERRORS = (OSError, EOFError, ValueError, OverflowError, zlib.error, ImageFileError, HeaderDataError)


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
        with _quiet():
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
        # A number that the type does not hold becomes infinite, and whoever needs it finite says so.
        with np.errstate(all="ignore"):
            array = np.asanyarray(image.dataobj) if dtype is None else image.dataobj.__array__(dtype)
    except MemoryError as error:
        raise InputError(f"{name}: the {tuple(map(int, image.shape))} voxels do not fit into memory") from error
    except _READ_ERRORS as error:
        raise InputError(f"{name}: truncated or damaged ({_line(error)})") from error
    return array


def affine_mm(image: Any, name: object) -> np.ndarray:
    """The 4x4 affine, voxel -> RAS mm, of a nibabel image, by one rule for every file.

    sform, else qform, else (both codes 0) what nibabel makes of the shape and zooms, with a warning.

    Raises:
        InputError: an entry is NaN or infinite.
    """
    header = image.header
    affine = np.asarray(image.affine, dtype=np.float64) * _millimetres(header)
    if not np.isfinite(affine).all():
        raise InputError(f"{name}: unusable geometry (the affine has entries that are NaN or infinite)")
    if not says_place(header):
        warnings.warn(
            f"{name}: has neither sform nor qform; taken as LAS about its centre (other software may differ)",
            stacklevel=2,
        )
    elif isinstance(header, nib.Nifti1Header) and header["sform_code"] and header["qform_code"]:
        _compare(header, name)
    return affine


def _compare(header: Any, name: object) -> None:
    """Warn of a header whose sform and qform put a corner of the image more than a tenth of a voxel apart."""
    apart = float(_apart(header) * _millimetres(header)[0, 0])
    linear = best_affine(header)[:3, :3]
    if abs(np.linalg.det(linear)) > 0 and apart > 0.1 * float(np.linalg.norm(linear, axis=0).min()):
        warnings.warn(
            f"{name}: sform and qform differ by up to {apart:.2g} mm; the sform is taken (other software may differ)",
            stacklevel=3,
        )


def _apart(header: Any) -> float:
    """How far apart a NIfTI header's sform and qform put a corner of the image, in its own unit of length.

    Infinite where the qform is no rotation.
    """
    try:
        qform = header.get_qform()
    except ValueError:
        return math.inf
    last = np.array([max(n - 1, 0) for n in (*header.get_data_shape(), 1, 1, 1)[:3]])
    corners = np.array(list(itertools.product((0.0, 1.0), repeat=3))) * last
    gap = header.get_sform() - qform
    return float(np.linalg.norm(corners @ gap[:3, :3].T + gap[:3, 3], axis=1).max())


def best_affine(header: Any) -> np.ndarray:
    """The 4x4 affine of a header, voxel -> RAS mm: sform, else qform, else what nibabel makes of shape and zooms."""
    return np.asarray(header.get_best_affine(), dtype=np.float64) * _millimetres(header)


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


def with_normal(affine: np.ndarray) -> np.ndarray:
    """The 4x4 affine of a slice whose step between slices may have been left out: 1 mm along its normal then."""
    steps = affine[:3, :3] / np.maximum(np.linalg.norm(affine[:3, :3], axis=0), np.finfo(float).tiny)
    if abs(np.linalg.det(steps)) > 1e-6:
        return affine
    full = affine.copy()
    normal = np.cross(steps[:, 0], steps[:, 1])
    full[:3, 2] = normal / np.linalg.norm(normal)
    return full


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
        silent = np.allclose(like.get_base_affine() * _millimetres(like), affine, atol=1e-4)
        sform = qform = 0 if silent else 1
    header.set_qform(affine, qform)
    header.set_sform(affine, sform)
    if qform and _apart(header) > 0.05 * float(np.linalg.norm(affine[:3, :3], axis=0).min()):
        # A quaternion holds no shear: leave the sform to say it alone.
        header.set_sform(affine, sform or qform)
        header["qform_code"] = 0


def _millimetres(header: Any) -> np.ndarray:
    """Factors that take the rows of a header's affine to millimetres, ``(4, 1)``."""
    unit = int(header["xyzt_units"]) & _SPATIAL_BITS if isinstance(header, nib.Nifti1Header) else 0
    scale = _MILLIMETRES.get(unit, 1.0)
    return np.array([[scale], [scale], [scale], [1.0]])


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what nibabel logs of a header that it mends: a file that cannot be used gets one line, ours."""
    before = imageglobals.logger.disabled
    imageglobals.logger.disabled = True
    try:
        yield
    finally:
        imageglobals.logger.disabled = before


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
