"""Which files there are for whom, and who reads and writes them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from regnet.errors import InputError
from regnet.io import (
    displacement,
    freesurfer,
    fsl_affine,
    fsl_warp,
    itk,
    itk_h5,
    itk_mat,
    itk_text,
    learn2reg,
    lta,
    niftyreg,
    ras_affine,
    spm,
)
from regnet.io.image import Image
from regnet.spatial.affine import Affine
from regnet.spatial.displacement import Displacement
from regnet.spatial.grid import Grid
from regnet.spatial.transform import Transform

NIFTI = displacement.SUFFIXES
_ITK = (*NIFTI, *itk_h5.SUFFIXES, *itk_mat.SUFFIXES, *itk_text.SUFFIXES)
MATRIX = (".mat", ".txt")
# What is written for whom.
SUFFIXES = {
    "itk": _ITK,
    "itk-h5": itk_h5.SUFFIXES,
    "fsl": (*MATRIX, *NIFTI),
    "freesurfer": (*lta.SUFFIXES, *freesurfer.SUFFIXES),
    "learn2reg": learn2reg.SUFFIXES,
    "nifty": NIFTI,
    "spm": NIFTI,
    "ras": MATRIX,
}
# For whom a name is meant, where nobody says.
MEANT = {
    **dict.fromkeys(_ITK, "itk"),
    **dict.fromkeys(SUFFIXES["freesurfer"], "freesurfer"),
    ".npz": "learn2reg",
}


@dataclass(frozen=True)
class File:
    """A transform file and what it lies between."""

    path: Path
    moving_image: Image | Grid | None
    fixed_image: Image | Grid | None
    overwrite: bool = False

    @property
    def moving(self) -> Grid:
        """The moving image's grid, which this file cannot do without."""
        return self._needed(self.moving_image, "moving")

    @property
    def fixed(self) -> Grid:
        """The fixed image's grid, which this file cannot do without."""
        return self._needed(self.fixed_image, "fixed")

    def _needed(self, image: Image | Grid | None, which: str) -> Grid:
        grid = grid_of(image)
        if grid is None:
            raise InputError(f"{self.path}: means something only with the {which} image; give --{which}")
        return grid


_Reader = Callable[[File], Transform]
# By convention and container.
READERS: dict[tuple[str, str], _Reader] = {
    ("itk", "nifti"): lambda f: displacement.read(f.path, sure=True),
    ("itk", "text"): lambda f: itk.from_records(itk_text.read(f.path), f.path),
    ("itk", "matlab"): lambda f: itk.from_records(itk_mat.read(f.path), f.path),
    ("itk", "hdf5"): lambda f: itk.from_records(itk_h5.read(f.path), f.path),
    ("fsl", "matrix"): lambda f: fsl_affine.read(f.path, f.moving, f.fixed),
    ("fsl", "nifti"): lambda f: fsl_warp.read(f.path, f.moving, grid_of(f.fixed_image)),
    ("freesurfer", "lta"): lambda f: lta.read(f.path),
    ("freesurfer", "mgh"): lambda f: freesurfer.read(f.path),
    ("learn2reg", "nifti"): lambda f: learn2reg.read(f.path, f.moving, f.fixed),
    ("learn2reg", "npz"): lambda f: learn2reg.read(f.path, f.moving, f.fixed),
    ("nifty", "nifti"): lambda f: niftyreg.read(f.path),
    ("spm", "nifti"): lambda f: spm.read(f.path),
    ("ras", "matrix"): lambda f: ras_affine.read(f.path),
}

_FieldWriter = Callable[[File, Displacement], None]
FIELD_WRITERS: dict[str, _FieldWriter] = {
    "itk": lambda f, field: displacement.write(f.path, field, f.fixed_image, f.overwrite),
    "fsl": lambda f, field: fsl_warp.write(f.path, field, f.moving, f.fixed_image, f.overwrite),
    "freesurfer": lambda f, field: freesurfer.write(f.path, field, f.moving, f.overwrite),
    "learn2reg": lambda f, field: learn2reg.write(f.path, field, f.moving, f.fixed_image, f.overwrite),
    "nifty": lambda f, field: niftyreg.write(f.path, field, f.fixed_image, f.overwrite),
    "spm": lambda f, field: spm.write(f.path, field, f.fixed_image, f.overwrite),
}
_MatrixWriter = Callable[[File, Path, Affine], None]
MATRIX_WRITERS: dict[str, _MatrixWriter] = {
    "fsl": lambda f, path, affine: fsl_affine.write(path, affine, f.moving, f.fixed),
    "freesurfer": lambda f, path, affine: lta.write(path, affine, f.moving, f.fixed),
    "ras": lambda f, path, affine: ras_affine.write(path, affine),
}


def grid_of(image: Image | Grid | None) -> Grid | None:
    return image.grid if isinstance(image, Image) else image
