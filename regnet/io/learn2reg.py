"""Learn2Reg's displacements: ``(X, Y, Z, 3)`` on the fixed image, in voxels, ``.nii.gz`` or ``.npz`` of one array.

``moving[p + u(p)]`` is what lies at fixed voxel ``p``: array indices of both images, whatever their affines say. So
the file means nothing in the world without the two images. ``(3, X, Y, Z)`` is read too, if the shape says so.
"""

from pathlib import Path

import numpy as np
import torch

from regnet import ops
from regnet.errors import InputError
from regnet.io.atomic import atomic_path
from regnet.io.fields import from_places, open_nifti, places, write_vectors
from regnet.io.image import Image
from regnet.io.nifti import load_numbers
from regnet.spatial.displacement import Displacement
from regnet.spatial.grid import Grid

SUFFIXES = (".npz", ".nii", ".nii.gz")


def read(path: Path, moving: Grid, fixed: Grid) -> Displacement:
    """Read a field.

    Raises:
        InputError: damaged, of another shape than the fixed image, or not finite.
    """
    array = _from_npz(path) if path.name.lower().endswith(".npz") else load_numbers(open_nifti(path), path, np.float32)
    ndim = fixed.ndim
    if array.ndim == 5 and array.shape[3] == 1:
        array = array[:, :, :, 0]
    if array.shape == (*fixed.shape, ndim):
        array = np.moveaxis(array, -1, 0)
    elif array.shape != (ndim, *fixed.shape):
        raise InputError(f"{path}: a field of {(*fixed.shape, ndim)} is needed on this fixed image, got {array.shape}")
    steps = torch.from_numpy(np.array(array, dtype=np.float32, order="C"))
    if not bool(torch.isfinite(steps).all()):
        raise InputError(f"{path}: the field has values that are NaN or infinite")
    return from_places(steps.add_(ops.identity(fixed.shape)[0]), moving, fixed)


def write(path: Path, field: Displacement, moving: Grid, like: Image | Grid | None, overwrite: bool) -> None:
    """Write a field on its own grid, float32.

    Raises:
        InputError: an existing file without ``overwrite``, or another suffix.
    """
    steps = places(field, moving) - ops.identity(field.grid.shape)[0]
    if not path.name.lower().endswith(".npz"):
        write_vectors(path, steps, field.grid, like, overwrite, (0, 0.0, ""), flat=True)
        return
    with atomic_path(path, overwrite) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, np.moveaxis(steps.numpy(), 0, -1))


def _from_npz(path: Path) -> np.ndarray:
    try:
        with path.open("rb") as stream:
            file = np.load(stream, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise InputError(f"{path}: a single array, not an .npz archive")
            if len(file.files) != 1:
                raise InputError(f"{path}: holds {len(file.files)} arrays, one is needed")
            array = file[file.files[0]]
    except InputError:
        raise
    except Exception as error:  # damaged archives make the library fail in any way
        raise InputError(f"{path}: damaged, or no .npz of numbers ({' '.join(str(error).split())})") from error
    if array.dtype.kind not in "fiu":
        raise InputError(f"{path}: an array of numbers is needed, got {array.dtype}")
    return array
