"""What kind of transform file lies there: its container by its first bytes, whose convention by what it says."""

import re
from pathlib import Path
from typing import Any

from regnet.errors import InputError
from regnet.io import displacement, freesurfer, fsl_warp, itk_h5, itk_mat, itk_text, lta, niftyreg, spm
from regnet.io.fields import open_nifti

CONVENTIONS = ("itk", "itk-h5", "fsl", "freesurfer", "learn2reg", "nifty", "spm", "ras")
"""Whose file it is. ``ras``: a plain matrix, fixed -> moving, as greedy and NiftyReg write it."""

_FEW = 4096  # bytes that tell a container
_BY_CONTAINER = {
    "hdf5": "itk",
    "text": "itk",
    "matlab": "itk",
    "lta": "freesurfer",
    "mgh": "freesurfer",
    "npz": "learn2reg",
}


def container(path: Path) -> str:
    """One of ``nifti``, ``mgh``, ``hdf5``, ``npz``, ``lta``, ``text`` (ITK's), ``matlab``, ``matrix``.

    Raises:
        InputError: there is no such file, it is empty, or none of these.
    """
    name = path.name.lower()
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if not path.is_file():
        raise InputError(f"{path}: is not a file")
    with path.open("rb") as stream:
        head = stream.read(_FEW)
    if not head:
        raise InputError(f"{path}: the file is empty")
    if head.startswith(b"\x89HDF"):
        return "hdf5"
    if name.endswith(itk_h5.SUFFIXES):
        raise InputError(f"{path}: damaged, or no transform of ITK's (not an HDF5 file)")
    if name.endswith(displacement.SUFFIXES):
        return "nifti"
    if name.endswith(freesurfer.SUFFIXES):
        return "mgh"
    if name.endswith(".m3z"):
        raise InputError(f"{path}: .m3z is not read; `mri_warp_convert --inm3z A.m3z --outmgzwarp A.mgz` makes .mgz")
    if name.endswith(".npz"):
        return "npz"
    text = head.decode("latin-1")
    if name.endswith(lta.SUFFIXES) or re.search(r"^type\s*=\s*\d", text, re.MULTILINE):
        return "lta"
    if text.startswith("#Insight Transform"):
        return "text"
    if re.fullmatch(r"[-+.\deE\s]+", text.replace("nan", "").replace("inf", "")):
        return "matrix"
    if name.endswith(itk_mat.SUFFIXES):
        return "matlab"
    known = (".nii", ".nii.gz", *itk_h5.SUFFIXES, ".mat", *itk_text.SUFFIXES, *lta.SUFFIXES, ".mgz", ".npz")
    raise InputError(f"{path}: not a transform we know ({', '.join(known)})")


def convention(path: Path, kind: str, images: bool) -> str:
    """Whose convention a file follows, by what it says itself.

    Args:
        path: of the file.
        kind: its :func:`container`.
        images: whether the moving and the fixed image are known.

    Raises:
        InputError: it does not say.
    """
    if kind == "nifti":
        return _of_nifti(path)
    if kind == "matrix":
        # FLIRT's matrices mean nothing without the images; with them, .mat of plain numbers is FLIRT's.
        if path.name.lower().endswith(".mat") and images:
            return "fsl"
        raise InputError(
            f"{path}: a plain matrix does not say whose it is; "
            "give --from fsl (with --moving and --fixed) or --from ras"
        )
    return _BY_CONTAINER[kind]


def _of_nifti(path: Path) -> str:
    image = open_nifti(path)
    header: Any = image.header
    intent, name = int(header["intent_code"]), niftyreg.name_of(header)
    if intent in (fsl_warp.FIELD, fsl_warp.SPLINES, *fsl_warp.OTHERS):
        return "fsl"
    by_name = {niftyreg.NAME: "nifty", spm.NAME: "spm"}
    if name in by_name:
        return by_name[name]
    shape = tuple(int(n) for n in image.shape)
    if bytes(header["descrip"].item()).decode("latin-1") in spm.DESCRIPTIONS and len(shape) == 5:
        return "spm"
    if intent in (displacement.VECTOR, displacement.DISPLACEMENT) or len(shape) not in (4, 5):
        return "itk"
    raise InputError(
        f"{path}: intent {intent} and the shape {shape} do not say which way the components point; "
        f"give --from {', '.join(word for word in CONVENTIONS[:-1] if word not in ('itk-h5', 'freesurfer'))}"
    )
