"""SPM's deformations, ``y_*.nii``: ``(X, Y, Z, 1, 3)`` on the fixed image, absolute RAS millimetres of the moving one.

Intent 1007, as in ITK's files, but named ``Mapping``; or none, and described as a deformation. Source: SPM's manual,
``spm_deformations.m`` and ``spm_preproc_write8.m``.
"""

from pathlib import Path

from regnet.errors import InputError
from regnet.io.fields import from_places, open_nifti, places, vectors, world, write_vectors
from regnet.io.image import Image
from regnet.spatial.displacement import Displacement
from regnet.spatial.grid import Grid

NAME = "Mapping"
DESCRIPTIONS = ("Deformation", "Inverse Deformation")


def read(path: Path) -> Displacement:
    """Read a deformation.

    Raises:
        InputError: damaged, of another shape, or not finite.
    """
    components, grid = vectors(open_nifti(path), path)
    return from_places(components, world(grid.ndim), grid)


def write(path: Path, field: Displacement, like: Image | Grid | None, overwrite: bool) -> None:
    """Write a deformation.

    Raises:
        InputError: not of 3-D.
    """
    if field.ndim != 3:
        raise InputError(f"{path}: SPM's deformations are of 3-D images")
    write_vectors(path, places(field, world(3)), field.grid, like, overwrite, (1007, 0.0, NAME))
