"""The front door to transform files of every kind: known by content on the way in, by name or word on the way out."""

from pathlib import Path

from regnet.errors import InputError
from regnet.io import displacement, itk, itk_h5, itk_mat, itk_text, lta
from regnet.io.atomic import atomic_path, check_output
from regnet.io.formats import FIELD_WRITERS, MATRIX, MATRIX_WRITERS, MEANT, NIFTI, READERS, SUFFIXES, File, grid_of
from regnet.io.image import Image
from regnet.io.kinds import CONVENTIONS, container, convention
from regnet.io.sound import check_fields
from regnet.spatial.affine import Affine
from regnet.spatial.grid import Grid
from regnet.spatial.transform import Transform


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
        InputError: missing, damaged, or of unclear convention; or an image is needed that was not given; or a field
            leads or lies further away than float32 tells voxels apart.
        ValueError: no such convention.
    """
    transform = _read(File(Path(path), moving, fixed), source)
    check_fields(transform, path)
    return transform


def _read(file: File, source: str | None) -> Transform:
    _known(source)
    kind = container(file.path)
    if source is None:
        source = convention(file.path, kind, file.moving_image is not None and file.fixed_image is not None)
        if (source, kind) == ("itk", "nifti"):
            return displacement.read(file.path)
    reader = READERS.get(("itk" if source == "itk-h5" else source, kind))
    if reader is None:
        raise InputError(f"{file.path}: {source} has no such files ({kind})")
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
    file = File(path, moving, like, overwrite)
    if target == "itk" and suffix not in NIFTI:
        _write_itk(file, transform, suffix)
    elif suffix in (*MATRIX, *lta.SUFFIXES):
        if not isinstance(transform, Affine):
            raise InputError(f"{path}: holds an affine map alone; this transform deforms, so give it a field's name")
        with atomic_path(path, overwrite) as temporary:
            MATRIX_WRITERS[target](file, temporary, transform)
    else:
        # Learn2Reg knows a field's place by the fixed image alone.
        grid = file.fixed if target == "learn2reg" else displacement.on_which(path, transform, like)
        FIELD_WRITERS[target](file, transform.on(grid))


def target_of(path: Path, target: str | None = None) -> tuple[str, str]:
    """For whom a file of this name is written, and its suffix; to be asked before the work.

    Raises:
        InputError: a name that the tool does not read.
        ValueError: no such convention.
    """
    _known(target)
    allowed = SUFFIXES[target] if target else tuple(MEANT)
    suffix = next((suffix for suffix in allowed if path.name.lower().endswith(suffix)), None)
    if suffix is None:
        raise InputError(f"{path}: a transform{f' for {target}' if target else ''} is written as {', '.join(allowed)}")
    return "itk" if target == "itk-h5" else target or MEANT[suffix], suffix


def _write_itk(file: File, transform: Transform, suffix: str) -> None:
    write = itk_h5.write if suffix in itk_h5.SUFFIXES else itk_mat.write if suffix == ".mat" else itk_text.write
    records = itk.to_records(transform, grid_of(file.fixed_image))
    with atomic_path(file.path, file.overwrite) as temporary:
        try:
            write(temporary, records)
        except ValueError as error:
            raise InputError(f"{file.path}: {error}") from error


def _known(word: str | None) -> None:
    if word is not None and word not in CONVENTIONS:
        raise ValueError(f"no convention {word!r}; use {', '.join(CONVENTIONS)}")
