"""Images and label maps in memory, and reading them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import torch
from torch import Tensor

from regnet.errors import InputError
from regnet.io import picture, simpleitk
from regnet.io.image_file import ImageFile, from_nibabel, open_image
from regnet.io.sound import check_float32, usable_grid
from regnet.spatial.grid import Grid

SUFFIXES = (".nii", ".nii.gz", ".mgz", ".mgh", *simpleitk.WRITTEN, *picture.SUFFIXES)
"""Of images that are written; ``.mhd`` and ``.nhdr`` are read, too."""


@dataclass(frozen=True, eq=False)
class Image:
    """An image and where it lies.

    Args:
        data: ``(C, *spatial)``; float32 from :func:`read_image`, an integer type from :func:`read_labels`.
        grid: shape and affine (voxel -> RAS mm).
        path: the file it came from, for messages; None if from memory.
        header: the nibabel header it came with, None if it had none.
    """

    data: Tensor = field(repr=False)
    grid: Grid
    path: Path | None = None
    header: Any = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """What to call this image in a message."""
        return str(self.path) if self.path is not None else "image in memory"

    @property
    def stored_dtype(self) -> np.dtype | None:
        """The type of the numbers in the file, None without a header; for ``write_image(dtype=...)``."""
        return None if self.header is None else np.dtype(self.header.get_data_dtype())


def read_image(path: str | Path, spacing: float | tuple[float, float] | None = None) -> Image:
    """Read a grey image as float32, the file's slope and intercept applied.

    Args:
        path: ``.nii``, ``.nii.gz``, ``.mgz``, ``.mgh``; with SimpleITK ``.nrrd``, ``.nhdr``, ``.mha``, ``.mhd``; or a
            2-D ``.png``, ``.tif``, ``.tiff``.
        spacing: mm per pixel of a PNG or TIFF (x, y); None: the file's resolution, else 1 mm. A volume has its own.

    Returns:
        Data ``(1, *spatial)``. Trailing axes of length 1 are dropped: ``(X, Y, Z, 1)`` is 3-D and ``(X, Y, 1)`` is
        2-D. A 2-D image has the affine of its plane, in the two world axes nearest to it.

    Raises:
        InputError: the file is missing, empty, damaged, of another kind, or holds several volumes or colours.
    """
    return from_file(open_image(path, spacing))


def read_labels(path: str | Path, spacing: float | tuple[float, float] | None = None) -> Image:
    """Read a label map with its integers exact; arguments and errors as :func:`read_image`.

    Returns:
        Data ``(1, *spatial)`` of an integer type that holds the file's: uint8, int8, int16, int32 or int64.

    Raises:
        InputError: also when a value is not a whole number.
    """
    return from_file(open_image(path, spacing), labels=True)


def from_file(file: ImageFile, labels: bool = False) -> Image:
    """Read the one volume of an opened file.

    Raises:
        InputError: it is damaged or holds several; for labels, a value that is not a whole number.
    """
    return Image(file.only_volume(labels)[None], file.grid, file.path, file.header)


def as_image(source: Any, labels: bool = False) -> Image:
    """Take an image as a caller has it: a path, an :class:`Image`, a nibabel image, or a pair (array, affine).

    Args:
        source: the image; an array is ``(*spatial)`` or ``(C, *spatial)``, its affine ``(D + 1, D + 1)``, RAS mm.
        labels: keep integers, as :func:`read_labels`.

    Raises:
        InputError: none of these, or what :func:`read_image` refuses.
    """
    if isinstance(source, Image):
        return source
    if isinstance(source, str | Path):
        return read_labels(source) if labels else read_image(source)
    if isinstance(source, nib.spatialimages.SpatialImage):
        name = source.get_filename()
        return from_file(from_nibabel(source, Path(name) if name else None), labels)
    if isinstance(source, tuple) and len(source) == 2:
        return _from_arrays(*source, labels)
    raise InputError(f"an image is a path, a nibabel image or a pair (array, affine), got {type(source).__name__}")


def check_image(image: Image) -> Image:
    """Refuse an image that cannot be registered; return it otherwise.

    Raises:
        InputError: NaN or infinite voxels, or all voxels equal.
    """
    bad = int((~torch.isfinite(image.data)).sum()) if image.data.is_floating_point() else 0
    if bad:
        raise InputError(f"{image.name}: {bad} voxels are NaN or infinite; clean the image first")
    low, high = torch.aminmax(image.data)
    if low == high:
        raise InputError(f"{image.name}: every voxel has the value {low.item():g}; there is nothing to register")
    return image


def _from_arrays(array: Any, matrix: Any, labels: bool) -> Image:
    data, affine = _tensor(array), _tensor(matrix)
    ndim = affine.shape[-1] - 1 if affine.ndim == 2 else 0
    if ndim not in (2, 3):
        raise InputError(f"image in memory: its affine must be 3 x 3 or 4 x 4, got shape {tuple(affine.shape)}")
    if data.ndim not in (ndim, ndim + 1):
        raise InputError(f"image in memory: an affine of {tuple(affine.shape)} needs {ndim} axes, got {data.ndim}")
    data = data if data.ndim == ndim + 1 else data[None]
    grid = usable_grid(data.shape[1:], affine, "image in memory")
    if labels:
        return Image(data, grid)
    taken = data.float()
    if data.dtype == torch.float64:
        check_float32(data.cpu().numpy(), taken.cpu().numpy(), "image in memory")
    return Image(taken, grid)


def _tensor(values: Any) -> Tensor:
    """A tensor of real numbers, whatever their strides and byte order."""
    try:
        if not isinstance(values, Tensor):
            array = np.asarray(values)
            values = torch.from_numpy(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")))
    except (TypeError, ValueError) as error:
        raise InputError(f"image in memory: not an array of numbers ({error})") from error
    if values.is_complex() or values.device.type == "meta":
        raise InputError("image in memory: real numbers are needed, not complex ones, and no tensor without any")
    return values.detach()
