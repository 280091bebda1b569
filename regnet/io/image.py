"""Images and label maps: NIfTI, MGH and grey 2-D PNG/TIFF."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import torch
from torch import Tensor

from regnet.errors import InputError
from regnet.io import gz, nifti, picture
from regnet.io.atomic import atomic_path
from regnet.spatial.grid import Grid

SUFFIXES = (".nii", ".nii.gz", ".mgz", ".mgh", *picture.SUFFIXES)


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
        path: ``.nii``, ``.nii.gz``, ``.mgz``, ``.mgh``, or a 2-D ``.png``, ``.tif``, ``.tiff``.
        spacing: mm per pixel of a PNG or TIFF (x, y); None: the file's resolution, else 1 mm. A volume has its own.

    Returns:
        Data ``(1, *spatial)``. Trailing axes of length 1 are dropped: ``(X, Y, Z, 1)`` is 3-D and ``(X, Y, 1)`` is
        2-D. A 2-D image has the affine of its plane, in the two world axes nearest to it.

    Raises:
        InputError: the file is missing, empty, damaged, of another kind, or holds several volumes or colours.
    """
    return _read(Path(path), spacing, labels=False)


def read_labels(path: str | Path, spacing: float | tuple[float, float] | None = None) -> Image:
    """Read a label map with its integers exact; arguments and errors as :func:`read_image`.

    Returns:
        Data ``(1, *spatial)`` of an integer type that holds the file's: uint8, int8, int16, int32 or int64.

    Raises:
        InputError: also when a value is not a whole number.
    """
    return _read(Path(path), spacing, labels=True)


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
        return _from_nibabel(source, Path(name) if name else None, labels)
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


def write_image(path: str | Path, data: Tensor, like: Image | Grid, dtype: Any = None, overwrite: bool = True) -> None:
    """Write an image or label map, whole or not at all.

    Args:
        path: what :func:`read_image` reads; folders are made.
        data: ``(*spatial)`` or ``(1, *spatial)``. Floats are written as float32. Integers are written in their own
            type if that is uint8, int8, int16 or int32, else in the smallest sufficient of uint8, int16 and int32.
        like: where the voxels lie; from an image also the sform and qform codes.
        dtype: the type on disk, e.g. the ``stored_dtype`` of a label map; ignored when it does not hold the values.
        overwrite: whether an existing file may be replaced.

    Raises:
        ValueError: the shape of ``data`` is not that of ``like``.
        InputError: a suffix we do not write, or values or geometry that the format cannot hold.
    """
    path = Path(path)
    suffix = _suffix(path)
    grid = like.grid if isinstance(like, Image) else like
    header = like.header if isinstance(like, Image) else None
    if data.ndim == grid.ndim + 1 and data.shape[0] == 1:
        data = data[0]
    if tuple(data.shape) != grid.shape:
        raise ValueError(f"data of shape {tuple(data.shape)} does not lie on a grid of {grid.shape}")
    array = _as_stored(data.detach().cpu(), dtype, path)
    with atomic_path(path, overwrite) as temporary:
        if suffix in picture.SUFFIXES:
            picture.write(temporary, path, array, grid)
        else:
            gz.save(_to_nibabel(array, grid, header, suffix), temporary)


def _suffix(path: Path) -> str:
    name = path.name.lower()
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return suffix
    raise InputError(f"{path}: not an image name we know; use {', '.join(SUFFIXES)}")


def _read(path: Path, spacing: float | tuple[float, float] | None, labels: bool) -> Image:
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if _suffix(path) in picture.SUFFIXES:
        array, affine = picture.read(path, spacing)
        data = _integers(array, path) if labels else torch.from_numpy(array.astype(np.float32))
        return Image(data[None], Grid(array.shape, torch.from_numpy(affine)), path)
    return _from_nibabel(nifti.open_volume(path), path, labels)


def _from_nibabel(image: Any, path: Path | None, labels: bool) -> Image:
    name = str(path) if path is not None else "image in memory"
    shape = tuple(int(n) for n in image.shape)
    if not shape or min(shape) < 1:
        raise InputError(f"{name}: has no voxels (shape {shape})")
    while len(shape) > 2 and shape[-1] == 1:
        shape = shape[:-1]
    if len(shape) == 4:
        raise InputError(f"{name}: 4-D image of {shape[-1]} volumes or channels; give one volume per file")
    if len(shape) not in (2, 3):
        raise InputError(f"{name}: {len(shape)}-D data of shape {shape}; a grey 2-D or 3-D image is needed")
    stored = np.dtype(image.header.get_data_dtype())
    if stored.kind not in "iuf":
        raise InputError(f"{name}: colour or complex voxels; a grey image is needed")
    affine = nifti.affine_mm(image, name)
    try:
        grid = Grid(shape, torch.from_numpy(affine if len(shape) == 3 else nifti.in_plane(affine)))
    except ValueError as error:
        raise InputError(f"{name}: unusable geometry ({error})") from error
    array = nifti.load_numbers(image, name, None if labels else np.float32).reshape(shape)
    data = _integers(array, name) if labels else torch.from_numpy(_native(array, np.dtype(np.float32)))
    return Image(data[None], grid, path, image.header)


def _from_arrays(array: Any, matrix: Any, labels: bool) -> Image:
    data, affine = _tensor(array), _tensor(matrix)
    ndim = affine.shape[-1] - 1 if affine.ndim == 2 else 0
    if ndim not in (2, 3):
        raise InputError(f"image in memory: its affine must be 3 x 3 or 4 x 4, got shape {tuple(affine.shape)}")
    if data.ndim not in (ndim, ndim + 1):
        raise InputError(f"image in memory: an affine of {tuple(affine.shape)} needs {ndim} axes, got {data.ndim}")
    data = data if data.ndim == ndim + 1 else data[None]
    try:
        grid = Grid(tuple(data.shape[1:]), affine)
    except ValueError as error:
        raise InputError(f"image in memory: unusable geometry ({error})") from error
    return Image(data if labels else data.float(), grid)


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


def _native(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    # One contiguous, writable array in the machine's byte order, that no longer hangs on an open file.
    return np.array(array, dtype=dtype.newbyteorder("="), order="C", copy=True)


def _integers(array: np.ndarray, name: object) -> Tensor:
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            whole = np.rint(array)
        if not np.array_equal(whole, array):
            raise InputError(f"{name}: label values must be whole numbers; this looks like an image or probabilities")
        if whole.size and np.abs(whole).max() >= 2**53:
            raise InputError(f"{name}: label values above 2**53 are not exact")
        array = whole.astype(_smallest(int(whole.min()), int(whole.max())) or np.int64)
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        # torch computes little in uint16 and more: the next signed type holds the same values.
        if array.dtype.itemsize == 8 and array.size and int(array.max()) > np.iinfo(np.int64).max:
            raise InputError(f"{name}: label values above 2**63 are not supported")
        array = array.astype({2: np.int32, 4: np.int64, 8: np.int64}[array.dtype.itemsize])
    return torch.from_numpy(_native(array, array.dtype))


def _smallest(low: int, high: int) -> Any:
    for dtype in (np.uint8, np.int16, np.int32):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return dtype
    return None


def _as_stored(data: Tensor, dtype: Any, path: Path) -> np.ndarray:
    if data.is_floating_point():
        return data.to(torch.float32).numpy()
    array = data.to(torch.uint8).numpy() if data.dtype == torch.bool else data.numpy()
    low, high = int(array.min()), int(array.max())
    if dtype is not None and np.dtype(dtype).kind in "iu" and np.dtype(dtype).itemsize < 8:
        limits = np.iinfo(dtype)
        if limits.min <= low and high <= limits.max:
            return array.astype(np.dtype(dtype).newbyteorder("="))
    if array.dtype in (np.uint8, np.int8, np.int16, np.int32):
        return array
    smallest = _smallest(low, high)
    if smallest is None:
        raise InputError(f"{path}: label values from {low} to {high} do not fit into 32 bits")
    return array.astype(smallest)


def _to_nibabel(array: np.ndarray, grid: Grid, header: Any, suffix: str) -> Any:
    # A slice goes back to where its volume was, and with as many axes.
    affine = nifti.embed(grid)
    if grid.ndim == 2 and header is not None:
        own = nifti.with_normal(nifti.best_affine(header))
        if np.allclose(nifti.in_plane(own), grid.affine.numpy(), atol=1e-5):
            affine = own
        if len(header.get_data_shape()) > 2:
            array = array[..., None]
    if suffix in (".mgz", ".mgh"):
        volume = array if array.ndim == 3 else array[..., None]
        dtype = volume.dtype if volume.dtype in (np.uint8, np.int16, np.int32, np.float32) else np.dtype(np.int32)
        return nib.MGHImage(volume.astype(dtype), affine)
    image = nib.Nifti1Image(array, affine, dtype=array.dtype)
    nifti.set_geometry(image.header, affine, header)
    return image
