"""An image file, opened: where its voxels lie is known, its volumes are read when they are asked for."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import torch
from torch import Tensor

from regnet.errors import InputError
from regnet.io import nifti, picture, simpleitk, voxels
from regnet.io.sound import usable_grid
from regnet.spatial.grid import Grid

SUFFIXES = (".nii", ".nii.gz", ".mgz", ".mgh", *simpleitk.SUFFIXES, *picture.SUFFIXES)
_VECTORS = (1006, 1007)  # intents of NIfTI: displacements (RAS) and vectors (LPS, as ITK writes them)


@dataclass(frozen=True, eq=False)
class ImageFile:
    """An image file whose numbers were not read yet.

    Args:
        grid: where the voxels of each volume lie.
        path: the file; None if from memory.
        header: the nibabel header; of other kinds of files one that says the same; None for a picture.
        axes: the axes beyond the spatial ones: ``()`` for an image, ``(T,)`` for a series, ``(1, 3)`` for vectors.
        holds_integers: whether the numbers are stored as integers, without a slope.
        read: gives the volumes one by one, ``(*spatial)``, in a type, or (None) as integers.
    """

    grid: Grid
    path: Path | None
    header: Any = field(repr=False)
    axes: tuple[int, ...]
    holds_integers: bool
    read: Callable[[torch.dtype | None], Iterator[Tensor]] = field(repr=False)

    @property
    def name(self) -> str:
        """What to call this file in a message."""
        return str(self.path) if self.path is not None else "image in memory"

    @property
    def stored_dtype(self) -> np.dtype | None:
        """The type of the numbers in the file, None of a picture."""
        return None if self.header is None else np.dtype(self.header.get_data_dtype())

    @property
    def count(self) -> int:
        """Number of volumes: of time points, components or channels."""
        return int(np.prod(self.axes, dtype=np.int64))

    @property
    def intent(self) -> int:
        """What a NIfTI file says it holds: 1007 vectors along LPS, 1006 along RAS; 0: nothing said."""
        return int(self.header["intent_code"]) if isinstance(self.header, nib.Nifti1Header) else 0

    @property
    def holds_vectors(self) -> bool:
        """Whether the file says that its volumes are the components of vectors."""
        return self.intent in _VECTORS and self.count == self.grid.ndim

    def volumes(self, labels: bool = False) -> Iterator[Tensor]:
        """The volumes in the order of the file, ``(*spatial)``: float32, or with their integers exact.

        Raises:
            InputError: the file is damaged; for labels, a value that is not a whole number.
        """
        return self.read(None if labels else torch.float32)

    def only_volume(self, labels: bool = False) -> Tensor:
        """The volume of a file that holds just one, as :meth:`volumes`.

        Raises:
            InputError: also if it holds several.
        """
        if len(self.axes) > 1:
            shape = (*self.grid.shape, *self.axes)
            raise InputError(f"{self.name}: 5-D data of shape {shape}; a grey 2-D or 3-D image is needed")
        if self.axes:
            raise InputError(f"{self.name}: 4-D image of {self.count} volumes or channels; give one volume per file")
        (volume,) = self.volumes(labels)
        return volume


def open_image(path: str | Path, spacing: float | tuple[float, float] | None = None) -> ImageFile:
    """Open an image of any kind that we read, by its suffix; arguments and errors as :func:`regnet.io.read_image`."""
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path}: no such file")
    suffix = suffix_of(path)
    if suffix in picture.SUFFIXES:
        return _picture(path, spacing)
    if suffix in simpleitk.SUFFIXES:
        found = simpleitk.open_header(path)
        whole = found.header.get_data_dtype().kind in "iu"
        return ImageFile(found.grid, path, found.header, (), whole, lambda dtype: iter([simpleitk.read(found, dtype)]))
    return from_nibabel(nifti.open_volume(path), path)


def read_header(path: str | Path) -> ImageFile:
    """Open an image whose place alone is wanted; its numbers are read only if there is doubt that they are whole.

    Raises:
        InputError: as :func:`regnet.io.read_image`, but for series and vectors, which have a place too.
    """
    found = open_image(path)
    if suffix_of(Path(path)) in (".nii.gz", ".mgz"):
        voxels.check_whole(nifti.open_volume(Path(path)), Path(path))
    return found


def suffix_of(path: Path) -> str:
    """The suffix of an image's name, of those we know.

    Raises:
        InputError: it is none of them.
    """
    name = path.name.lower()
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return suffix
    raise InputError(f"{path}: not an image name we know; use {', '.join(SUFFIXES)}")


def from_nibabel(image: Any, path: Path | None) -> ImageFile:
    """A nibabel image, its numbers not read; ``path`` is None for one made in memory.

    Raises:
        InputError: no voxels, no numbers, or no usable geometry.
    """
    name = path if path is not None else "image in memory"
    shape = tuple(int(n) for n in image.shape)
    if not shape or min(shape) < 1:
        raise InputError(f"{name}: has no voxels (shape {shape})")
    while len(shape) > 2 and shape[-1] == 1:
        shape = shape[:-1]
    if len(shape) == 1:
        raise InputError(f"{name}: 1-D data of shape {shape}; a grey 2-D or 3-D image is needed")
    spatial, axes = shape[:3], shape[3:]
    if len(spatial) == 3 and spatial[2] == 1:
        spatial = spatial[:2]
    if np.dtype(image.header.get_data_dtype()).kind not in "iuf":
        raise InputError(f"{name}: colour or complex voxels; a grey image is needed")
    affine = nifti.affine_mm(image, name)
    grid = usable_grid(spatial, torch.from_numpy(affine if len(spatial) == 3 else nifti.in_plane(affine)), name)

    def read(dtype: torch.dtype | None) -> Iterator[Tensor]:
        return (volume.reshape(grid.shape) for volume in voxels.read_volumes(image, name, dtype))

    return ImageFile(grid, path, image.header, axes, voxels.are_integers(image), read)


def _picture(path: Path, spacing: float | tuple[float, float] | None) -> ImageFile:
    array, affine = picture.read(path, spacing)

    def read(dtype: torch.dtype | None) -> Iterator[Tensor]:
        yield voxels.integers(array, path) if dtype is None else voxels.taken(array, dtype, path)

    return ImageFile(Grid(array.shape, torch.from_numpy(affine)), path, None, (), array.dtype.kind in "iu", read)
