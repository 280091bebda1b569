"""Images written whole or not at all: at once, or slab by slab where they are too large for that."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import torch
from torch import Tensor

from regnet.errors import InputError
from regnet.io import gz, nifti, picture, simpleitk
from regnet.io.atomic import atomic_path
from regnet.io.image import SUFFIXES, Image
from regnet.io.image_file import ImageFile, suffix_of
from regnet.io.voxels import smallest
from regnet.spatial.grid import Grid

_MGH = (".mgz", ".mgh")
_MGH_TYPES = (np.uint8, np.int16, np.int32, np.float32)
_TIME_BITS = 56  # of xyzt_units


def write_image(
    path: str | Path, data: Tensor, like: Image | ImageFile | Grid, dtype: Any = None, overwrite: bool = True
) -> None:
    """Write an image or label map, whole or not at all.

    Args:
        path: what :func:`regnet.io.read_image` reads, but for ``.mhd`` and ``.nhdr``; folders are made.
        data: ``(*spatial)`` or ``(1, *spatial)``. Floats are written as float32. Integers are written in their own
            type if that is uint8, int8, int16 or int32, else in the smallest sufficient of uint8, int16 and int32.
        like: where the voxels lie; from an image also the sform and qform codes.
        dtype: the type on disk, e.g. the ``stored_dtype`` of a label map; ignored when it does not hold the values.
        overwrite: whether an existing file may be replaced.

    Raises:
        ValueError: the shape of ``data`` is not that of ``like``.
        InputError: a suffix we do not write, or values or geometry that the format cannot hold.
    """
    grid = like if isinstance(like, Grid) else like.grid
    if data.ndim == grid.ndim + 1 and data.shape[0] == 1:
        data = data[0]
    if tuple(data.shape) != grid.shape:
        raise ValueError(f"data of shape {tuple(data.shape)} does not lie on a grid of {grid.shape}")
    data = data.detach().cpu()
    data = data.float() if data.is_floating_point() else data
    low, high = (0, 1) if data.is_floating_point() or data.dtype == torch.bool else _range(data)
    with image_writer(path, like, stored_type(data.dtype, low, high, dtype, path), overwrite=overwrite) as put:
        put(data)


@contextmanager
def image_writer(
    path: str | Path,
    like: Image | ImageFile | Grid,
    dtype: np.dtype,
    contents: ImageFile | None = None,
    overwrite: bool = True,
) -> Iterator[Callable[[Tensor], None]]:
    """Write an image in parts; the file takes its place when all are there.

    NIfTI and MGH go to disk part by part; other kinds are gathered first.

    Args:
        path, like, overwrite: as :func:`write_image`.
        dtype: the type on disk.
        contents: a series or vectors: the file gets its axes beyond the spatial ones, its intent and its time step.

    Yields:
        ``put(part)``: the next voxels ``(*spatial[:-1], k)``, k along the last spatial axis, volume after volume.

    Raises:
        InputError: a suffix we do not write, or values or geometry that the format cannot hold.
    """
    path = Path(path)
    suffix = suffix_of(path)
    if suffix not in SUFFIXES:
        raise InputError(f"{path}: images are written as {', '.join(SUFFIXES)}")
    grid = like if isinstance(like, Grid) else like.grid
    with atomic_path(path, overwrite) as temporary:
        if suffix in picture.SUFFIXES or suffix in simpleitk.WRITTEN:
            if contents is not None and contents.axes:
                raise InputError(f"{path}: several volumes are written as .nii or .nii.gz")
            parts: list[Tensor] = []
            yield parts.append
            writer: Any = picture if suffix in picture.SUFFIXES else simpleitk
            writer.write(temporary, path, torch.cat(parts, dim=-1).numpy().astype(dtype), grid)
            return
        header = _header(suffix, grid, None if isinstance(like, Grid) else like.header, dtype, contents)
        with gz.writer(temporary) as file:
            (header.writehdr_to if suffix in _MGH else header.write_to)(file)
            file.seek(header.get_data_offset())
            # MGH is big-endian, whatever its header answers
            kind = header.get_data_dtype().newbyteorder(">" if suffix in _MGH else "=")
            yield lambda part: _put(file, part, kind)
            if suffix in _MGH:
                header.writeftr_to(file)


def stored_type(dtype: torch.dtype, low: int, high: int, asked: Any, path: object) -> np.dtype:
    """The type on disk for numbers of a torch type from ``low`` to ``high``; see :func:`write_image`.

    Raises:
        InputError: they do not fit into 32 bits.
    """
    if dtype.is_floating_point:
        return np.dtype(np.float32)
    if asked is not None and np.dtype(asked).kind in "iu" and np.dtype(asked).itemsize < 8:
        limits = np.iinfo(asked)
        if limits.min <= low and high <= limits.max:
            return np.dtype(asked).newbyteorder("=")
    if dtype in (torch.uint8, torch.int8, torch.int16, torch.int32):
        return torch.empty(0, dtype=dtype).numpy().dtype
    held = smallest(low, high)
    if held is None:
        raise InputError(
            f"{path}: label values from {low} to {high} do not fit into 32 bits, the widest that labels are written "
            "in; renumber them"
        )
    return np.dtype(held)


def _range(data: Tensor) -> tuple[int, int]:
    low, high = torch.aminmax(data)
    return int(low), int(high)


def _put(file: Any, part: Tensor, dtype: np.dtype) -> None:
    # The file has the first axis fastest; torch turns a part around with all its threads.
    part = part.byte() if part.dtype == torch.bool else part
    turned = part.permute(*reversed(range(part.ndim))).contiguous().numpy()
    file.write(turned.astype(dtype, copy=False).tobytes())


def _header(suffix: str, grid: Grid, like: Any, dtype: np.dtype, contents: ImageFile | None) -> Any:
    axes = () if contents is None else contents.axes
    # A slice goes back to where its volume was, and with as many axes.
    affine, shape = nifti.embed(grid), grid.shape
    if grid.ndim == 2 and like is not None:
        own = nifti.with_normal(nifti.best_affine(like))
        if np.allclose(nifti.in_plane(own), grid.affine.numpy(), atol=1e-5):
            affine = own
        if len(like.get_data_shape()) > 2:
            shape = (*shape, 1)
    if axes or suffix in _MGH:
        shape = (*shape, *(1,) * (3 - len(shape)), *axes)
    if suffix in _MGH:
        return _mgh_header(shape, affine, dtype)
    header = nib.Nifti1Header()
    header.set_data_dtype(dtype)
    header.set_data_shape(shape)
    header.set_data_offset(header.single_vox_offset)
    nifti.set_geometry(header, affine, like)
    if contents is not None and isinstance(contents.header, nib.Nifti1Header):
        header["intent_code"] = contents.header["intent_code"]
        header["pixdim"][4:] = contents.header["pixdim"][4:]
        header["xyzt_units"] = int(header["xyzt_units"]) | int(contents.header["xyzt_units"]) & _TIME_BITS
    return header


def _mgh_header(shape: tuple[int, ...], affine: np.ndarray, dtype: np.dtype) -> nib.freesurfer.mghformat.MGHHeader:
    """What nibabel makes of an image with such numbers, without the numbers."""
    nothing = np.broadcast_to(np.zeros((), dtype if dtype in _MGH_TYPES else np.int32), shape)
    image = nib.MGHImage(nothing, affine)
    image.update_header()
    return image.header
