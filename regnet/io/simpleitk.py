"""NRRD and MetaImage files by way of SimpleITK, an optional package: one grey 2-D or 3-D image a file.

ITK's world is LPS: the change to RAS is here alone.
"""

import math
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import torch
from torch import Tensor

from regnet.errors import InputError
from regnet.io import nifti, voxels
from regnet.io.sound import usable_grid
from regnet.spatial.grid import Grid

SUFFIXES = (".nrrd", ".nhdr", ".mha", ".mhd")
WRITTEN = (".nrrd", ".mha")  # the others are two files, which cannot take their place at once
_META = (".mha", ".mhd")
_MOST_AXES = 4
_DEFLATE = 1032  # no deflated stream grows by more than this factor
_DETACHED = re.compile(rb"^(?:ElementDataFile\s*=|data ?file:)\s*(.+?)\s*$", re.MULTILINE | re.IGNORECASE)
_HEADER = 1 << 16  # bytes within which a header names the file of its data


@dataclass(frozen=True, eq=False)
class Header:
    """What a file says before its numbers are read: where they lie, and of which type they are (in a NIfTI header)."""

    path: Path
    grid: Grid
    header: nib.Nifti1Header
    reader: Any


def open_header(path: Path) -> Header:
    """Read the header of an image.

    Raises:
        InputError: SimpleITK is missing; the file is missing, damaged, too short for what it promises, of several
            channels or more than three axes, or without a usable geometry.
    """
    sitk = _simpleitk(path)
    if not path.is_file():
        raise InputError(f"{path}: is not a file" if path.exists() else f"{path}: no such file")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty")
    if path.suffix.lower() in _META:
        _check_meta(path)
    reader = sitk.ImageFileReader()
    reader.SetFileName(str(path))
    try:
        with _silence():
            reader.ReadImageInformation()
        shape, channels = reader.GetSize(), reader.GetNumberOfComponents()
        kind = sitk.GetPixelIDValueAsString(reader.GetPixelIDValue())
        dtype = _numbers(sitk, reader.GetPixelIDValue())
    except RuntimeError as error:
        raise InputError(f"{path}: truncated, damaged or not an image ({_reason(error)})") from error
    if channels != 1 or dtype is None:
        raise InputError(f"{path}: holds {kind.lower()} of {channels} components; a grey image is needed")
    while len(shape) > 2 and shape[-1] == 1:
        shape = shape[:-1]
    if len(shape) not in (2, 3) or min(shape) < 1:
        raise InputError(f"{path}: {len(shape)}-D data of shape {shape}; a grey 2-D or 3-D image is needed")
    _check_promise(path, math.prod(shape) * dtype.itemsize)
    affine = _affine(reader)
    grid = usable_grid(shape, torch.from_numpy(affine if len(shape) == 3 else nifti.in_plane(affine)), path)
    header = nib.Nifti1Header()
    header.set_data_dtype(dtype)
    header.set_data_shape(reader.GetSize())
    header.set_xyzt_units("mm")
    header.set_sform(affine, 1)
    header.set_qform(affine, 1, strip_shears=True)
    return Header(path, grid, header, reader)


def read(found: Header, dtype: torch.dtype | None = torch.float32) -> Tensor:
    """The numbers of an image ``(*spatial)``, in a type, or (None) as integers for a label map.

    Raises:
        InputError: the file is damaged, or a label is not a whole number.
    """
    sitk = _simpleitk(found.path)
    try:
        with _silence():
            image = found.reader.Execute()  # its memory is that of the array
    except (RuntimeError, MemoryError) as error:
        raise InputError(f"{found.path}: truncated or damaged") from error
    array = sitk.GetArrayViewFromImage(image).T.reshape(found.grid.shape)
    if dtype is None:
        return voxels.integers(array, found.path).contiguous()
    return voxels.taken(array, dtype, found.path)


def write(temporary: Path, path: Path, array: np.ndarray, grid: Grid) -> None:
    """Write ``(*spatial)`` numbers to ``temporary``; ``path`` is for messages.

    Raises:
        InputError: SimpleITK is missing, or the grid is sheared, which these files cannot say.
    """
    sitk = _simpleitk(path)
    linear = grid.affine[:-1, :-1].numpy() * _flip(grid.ndim)[:, None]
    spacing = np.linalg.norm(linear, axis=0)
    direction = linear / spacing
    if not np.allclose(direction.T @ direction, np.eye(grid.ndim), atol=1e-4):
        raise InputError(f"{path}: the grid is sheared, which {path.suffix} files cannot say; write .nii.gz")
    image = sitk.GetImageFromArray(np.ascontiguousarray(array.T))
    image.SetSpacing(spacing.tolist())
    image.SetDirection(direction.flatten().tolist())
    image.SetOrigin((grid.affine[:-1, -1].numpy() * _flip(grid.ndim)).tolist())
    try:
        sitk.WriteImage(image, str(temporary), useCompression=True)
    except RuntimeError as error:
        raise InputError(f"{path}: cannot be written ({_reason(error)})") from error


def _affine(reader: Any) -> np.ndarray:
    """The 4x4 affine, voxel -> RAS mm; a 2-D file lies in the axial plane at height 0."""
    ndim = len(reader.GetSize())
    affine = np.eye(4)
    axes = min(ndim, 3)
    direction = np.asarray(reader.GetDirection()).reshape(ndim, ndim)[:axes, :axes]
    affine[:axes, :axes] = direction * np.asarray(reader.GetSpacing())[:axes]
    affine[:axes, 3] = reader.GetOrigin()[:axes]
    affine[:2] *= -1
    return affine


def _flip(ndim: int) -> np.ndarray:
    return np.array([-1.0, -1.0, 1.0])[:ndim]


def _check_meta(path: Path) -> None:
    """Refuse a MetaImage header that ITK does not survive: it believes any number of axes.

    Raises:
        InputError: no numbers that fit together, or no name of the data.
    """
    with path.open("rb") as file:
        lines = file.read(_HEADER).split(b"\n")
    said = {}
    for line in lines:
        key, equals, value = line.partition(b"=")
        said[key.strip().lower()] = value.split()
        if key.strip().lower() == b"elementdatafile" or not equals:
            break
    axes, sizes = said.get(b"ndims", []), said.get(b"dimsize", [])
    sound = b"elementdatafile" in said and not any(b"\0" in word for words in said.values() for word in words)
    sound = sound and len(axes) == 1 and axes[0] == b"%d" % len(sizes) and len(sizes) <= _MOST_AXES
    if not sound or said.get(b"elementnumberofchannels", [b"1"]) != [b"1"]:
        raise InputError(f"{path}: truncated, damaged or not one grey image (its header does not fit together)")


def _check_promise(path: Path, promised: int) -> None:
    """Refuse a file whose header promises more than it can hold, before ITK makes room for it."""
    with path.open("rb") as file:
        named = _DETACHED.search(file.read(_HEADER))
    size = path.stat().st_size
    other = path.parent / named.group(1).decode(errors="replace") if named else path
    if named and named.group(1) not in (b"LOCAL", b"LIST") and "%" not in other.name:
        if not other.is_file():
            raise InputError(f"{path}: its data file {other.name} is missing")
        size += other.stat().st_size
    if promised > size * _DEFLATE:
        raise InputError(
            f"{path}: truncated or damaged (the header promises {promised:,} bytes, the file has {size:,})"
        )


def _numbers(sitk: Any, pixel: int) -> np.dtype | None:
    """The type of grey voxels; None for complex numbers, vectors and label objects."""
    names = ("UInt8", "Int8", "UInt16", "Int16", "UInt32", "Int32", "UInt64", "Int64", "Float32", "Float64")
    known = {getattr(sitk, f"sitk{name}"): np.dtype(name.lower()) for name in names}
    return known.get(pixel)


@contextmanager
def _silence() -> Iterator[None]:
    """Without what ITK's readers print of a damaged file: it gets one line, ours."""
    sys.stderr.flush()
    before, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(nowhere)


def _reason(error: BaseException) -> str:
    """The last sentence of ITK's many lines."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def _simpleitk(path: Path) -> Any:
    try:
        import SimpleITK
    except ImportError as error:
        raise InputError(f"{path}: {path.suffix} files need SimpleITK; pip install 'regnet[itk]'") from error
    SimpleITK.ProcessObject.SetGlobalWarningDisplay(False)
    return SimpleITK
