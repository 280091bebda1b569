"""NiftyReg's fields: ``(X, Y, Z, 1, 3)`` on the fixed (reference) image, RAS millimetres, absolute or relative.

The intent is 1007, as in ITK's files, but its name is ``NREG_TRANS`` and its first parameter says what the vectors
are. Source: NiftyReg's ``_reg_localTransformation.h`` and its wiki.
"""

from pathlib import Path

from regnet.errors import InputError
from regnet.io.fields import from_mm, from_places, open_nifti, places, vectors, world, write_vectors
from regnet.io.image import Image
from regnet.spatial.displacement import Displacement
from regnet.spatial.grid import Grid

NAME = "NREG_TRANS"
_OTHERS = {2.0: "cubic control points", 3.0: "a velocity", 4.0: "a velocity", 5.0: "a velocity's control points"}


def read(path: Path) -> Displacement:
    """Read a field. A file without NiftyReg's name is taken for places (a "deformation field").

    Raises:
        InputError: damaged, or control points or a velocity.
    """
    image = open_nifti(path)
    header = image.header
    kind = float(header["intent_p1"]) if name_of(header) == NAME else 0.0
    if kind not in (0, 1):
        what = _OTHERS.get(kind) or f"kind {kind:g}"
        raise InputError(f"{path}: holds {what}; make a deformation field with `reg_transform -def` first")
    components, grid = vectors(image, path)
    return from_mm(components, grid, "edge") if kind == 1 else from_places(components, world(grid.ndim), grid)


def write(path: Path, field: Displacement, like: Image | Grid | None, overwrite: bool) -> None:
    """Write a field of places, NiftyReg's "deformation field"."""
    write_vectors(path, places(field, world(field.ndim)), field.grid, like, overwrite, (1007, 0.0, NAME))


def name_of(header: object) -> str:
    """The intent's name in a NIfTI header."""
    return bytes(header["intent_name"].item()).split(b"\0")[0].decode("latin-1")  # type: ignore[index]
