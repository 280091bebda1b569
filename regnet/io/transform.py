"""The front door to transform files of every kind: known by content on the way in, by name or word on the way out."""

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
from regnet.io.atomic import atomic_path, check_output
from regnet.io.image import Image
from regnet.io.kinds import CONVENTIONS, container, convention
from regnet.spatial.affine import Affine
from regnet.spatial.displacement import Displacement
from regnet.spatial.grid import Grid
from regnet.spatial.transform import Transform

_NIFTI = displacement.SUFFIXES
_ITK = (*_NIFTI, *itk_h5.SUFFIXES, *itk_mat.SUFFIXES, *itk_text.SUFFIXES)
_MATRIX = (".mat", ".txt")
# What is written for whom.
_SUFFIXES = {
    "itk": _ITK,
    "itk-h5": itk_h5.SUFFIXES,
    "fsl": (*_MATRIX, *_NIFTI),
    "freesurfer": (*lta.SUFFIXES, *freesurfer.SUFFIXES),
    "learn2reg": learn2reg.SUFFIXES,
    "nifty": _NIFTI,
    "spm": _NIFTI,
    "ras": _MATRIX,
}
# For whom a name is meant, where nobody says.
_MEANT = {
    **dict.fromkeys(_ITK, "itk"),
    **dict.fromkeys(_SUFFIXES["freesurfer"], "freesurfer"),
    ".npz": "learn2reg",
}


@dataclass(frozen=True)
class _File:
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
        grid = _grid(image)
        if grid is None:
            raise InputError(f"{self.path}: means something only with the {which} image; give --{which}")
        return grid


_Reader = Callable[[_File], Transform]
# By convention and container.
_READERS: dict[tuple[str, str], _Reader] = {
    ("itk", "nifti"): lambda f: displacement.read(f.path, sure=True),
    ("itk", "text"): lambda f: itk.from_records(itk_text.read(f.path), f.path),
    ("itk", "matlab"): lambda f: itk.from_records(itk_mat.read(f.path), f.path),
    ("itk", "hdf5"): lambda f: itk.from_records(itk_h5.read(f.path), f.path),
    ("fsl", "matrix"): lambda f: fsl_affine.read(f.path, f.moving, f.fixed),
    ("fsl", "nifti"): lambda f: fsl_warp.read(f.path, f.moving, _grid(f.fixed_image)),
    ("freesurfer", "lta"): lambda f: lta.read(f.path),
    ("freesurfer", "mgh"): lambda f: freesurfer.read(f.path),
    ("learn2reg", "nifti"): lambda f: learn2reg.read(f.path, f.moving, f.fixed),
    ("learn2reg", "npz"): lambda f: learn2reg.read(f.path, f.moving, f.fixed),
    ("nifty", "nifti"): lambda f: niftyreg.read(f.path),
    ("spm", "nifti"): lambda f: spm.read(f.path),
    ("ras", "matrix"): lambda f: ras_affine.read(f.path),
}

_FieldWriter = Callable[[_File, Displacement], None]
_FIELD_WRITERS: dict[str, _FieldWriter] = {
    "itk": lambda f, field: displacement.write(f.path, field, f.fixed_image, f.overwrite),
    "fsl": lambda f, field: fsl_warp.write(f.path, field, f.moving, f.fixed_image, f.overwrite),
    "freesurfer": lambda f, field: freesurfer.write(f.path, field, f.moving, f.overwrite),
    "learn2reg": lambda f, field: learn2reg.write(f.path, field, f.moving, f.fixed_image, f.overwrite),
    "nifty": lambda f, field: niftyreg.write(f.path, field, f.fixed_image, f.overwrite),
    "spm": lambda f, field: spm.write(f.path, field, f.fixed_image, f.overwrite),
}
_MatrixWriter = Callable[[_File, Path, Affine], None]
_MATRIX_WRITERS: dict[str, _MatrixWriter] = {
    "fsl": lambda f, path, affine: fsl_affine.write(path, affine, f.moving, f.fixed),
    "freesurfer": lambda f, path, affine: lta.write(path, affine, f.moving, f.fixed),
    "ras": lambda f, path, affine: ras_affine.write(path, affine),
}


def read_transform(
    path: str | Path,
    source: str | None = None,
    moving: Image | Grid | None = None,
    fixed: Image | Grid | None = None,
) -> Transform:
    """Read a transform of any tool as the world map it means, fixed -> moving.

    Args:
        path: ITK's ``.nii.gz`` fields, ``.mat``, ``.txt``, ``.tfm``, ``.h5``; FSL's ``.mat`` and warps; FreeSurfer's
            ``.lta`` and ``.mgz`` warps; Learn2Reg's, NiftyReg's and SPM's fields; a plain matrix.
        source: whose file it is, one of :data:`CONVENTIONS`; None: what its content says.
        moving, fixed: the images it is between. FSL and Learn2Reg need them; a plain ``.mat`` with both is FSL's.

    Returns:
        A field of ITK's is the identity beyond its grid; the others go on as at their edge.

    Raises:
        InputError: missing, damaged, or of unclear convention; or an image is needed that was not given.
        ValueError: no such convention.
    """
    file = _File(Path(path), moving, fixed)
    _known(source)
    kind = container(file.path)
    if source is None:
        source = convention(file.path, kind, moving is not None and fixed is not None)
        if (source, kind) == ("itk", "nifti"):
            return displacement.read(file.path)
    reader = _READERS.get(("itk" if source == "itk-h5" else source, kind))
    if reader is None:
        raise InputError(f"{path}: {source} has no such files ({kind})")
    return reader(file)


def write_transform(
    path: str | Path,
    transform: Transform,
    like: Image | Grid | None = None,
    overwrite: bool = True,
    target: str | None = None,
    moving: Image | Grid | None = None,
) -> None:
    """Write a transform for any tool.

    Args:
        path: its suffix says matrix or field; folders are made.
        transform: what to write. ITK's ``.h5`` and text keep its parts; other files hold one field, or one matrix.
        like: the fixed image: grid (a :class:`Displacement` keeps its own) and sform and qform codes of a field.
        overwrite: whether an existing file may be replaced.
        target: for whom, one of :data:`CONVENTIONS`; None: ITK, or FreeSurfer or Learn2Reg by suffix.
        moving: the moving image, which FSL, FreeSurfer and Learn2Reg need to know.

    Raises:
        InputError: a name or a map that the format cannot hold, an image that is needed, or an existing file without
            ``overwrite``.
        ValueError: no such convention.
    """
    path = Path(path)
    target, suffix = target_of(path, target)
    check_output(path, overwrite)
    file = _File(path, moving, like, overwrite)
    if target == "itk" and suffix not in _NIFTI:
        _write_itk(file, transform, suffix)
    elif suffix in (*_MATRIX, *lta.SUFFIXES):
        if not isinstance(transform, Affine):
            raise InputError(f"{path}: holds an affine map alone; this transform deforms, so give it a field's name")
        with atomic_path(path, overwrite) as temporary:
            _MATRIX_WRITERS[target](file, temporary, transform)
    else:
        # Learn2Reg knows a field's place by the fixed image alone.
        grid = file.fixed if target == "learn2reg" else displacement.on_which(path, transform, like)
        _FIELD_WRITERS[target](file, transform.on(grid))


def target_of(path: Path, target: str | None = None) -> tuple[str, str]:
    """For whom a file of this name is written, and its suffix; to be asked before the work.

    Raises:
        InputError: a name that the tool does not read.
        ValueError: no such convention.
    """
    _known(target)
    allowed = _SUFFIXES[target] if target else tuple(_MEANT)
    suffix = next((suffix for suffix in allowed if path.name.lower().endswith(suffix)), None)
    if suffix is None:
        raise InputError(f"{path}: a transform{f' for {target}' if target else ''} is written as {', '.join(allowed)}")
    return "itk" if target == "itk-h5" else target or _MEANT[suffix], suffix


def _write_itk(file: _File, transform: Transform, suffix: str) -> None:
    write = itk_h5.write if suffix in itk_h5.SUFFIXES else itk_mat.write if suffix == ".mat" else itk_text.write
    records = itk.to_records(transform, _grid(file.fixed_image))
    with atomic_path(file.path, file.overwrite) as temporary:
        try:
            write(temporary, records)
        except ValueError as error:
            raise InputError(f"{file.path}: {error}") from error


def _known(word: str | None) -> None:
    if word is not None and word not in CONVENTIONS:
        raise ValueError(f"no convention {word!r}; use {', '.join(CONVENTIONS)}")


def _grid(image: Image | Grid | None) -> Grid | None:
    return image.grid if isinstance(image, Image) else image
