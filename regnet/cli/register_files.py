"""The files that ``regnet register`` writes: their names, and what is in each."""

import argparse
from pathlib import Path

import torch

from regnet import ops
from regnet.cli.options import background_of
from regnet.cli.output import check_suffix
from regnet.errors import InputError
from regnet.inference import Result
from regnet.io import Image, write_image, write_transform
from regnet.io.displacement import SUFFIXES as FIELD_SUFFIXES
from regnet.io.image import SUFFIXES as IMAGE_SUFFIXES
from regnet.io.itk_h5 import SUFFIXES as COMPOSITE_SUFFIXES
from regnet.spatial import resample

# What can be written, and what the file's name may end with.
_SUFFIXES = {
    "moved": IMAGE_SUFFIXES,
    "moved_labels": IMAGE_SUFFIXES,
    "jacobian": IMAGE_SUFFIXES,
    "uncertainty": IMAGE_SUFFIXES,
    "warp": FIELD_SUFFIXES,
    "inverse_warp": FIELD_SUFFIXES,
    "composite": COMPOSITE_SUFFIXES,
    "figure": (".png",),
}
# What --prefix writes, by ANTs' names.
_PREFIXED = {
    "prefix_affine": "0GenericAffine.mat",
    "prefix_warp": "1Warp.nii.gz",
    "prefix_inverse_warp": "1InverseWarp.nii.gz",
    "prefix_moved": "Warped.nii.gz",
}

# What names files.
NAMED = (*_SUFFIXES, "prefix", "displacement")


def files_to_write(args: argparse.Namespace) -> dict[str, Path]:
    """Every file that the options name, by what it is.

    Raises:
        InputError: there is none, or a name that cannot be written.
    """
    written = {name: getattr(args, name) for name in _SUFFIXES if getattr(args, name) is not None}
    for name, path in written.items():
        check_suffix(path, _SUFFIXES[name], option(name))
    if args.displacement is not None:  # of --format learn2reg
        written["displacement"] = args.displacement
    if args.composite is not None:
        written["inverse_composite"] = _inverse_name(args.composite)
    if args.prefix is not None:
        if not args.prefix:
            raise InputError("--prefix '' names nothing; give a folder and the beginning of a name, such as out/ann_")
        written.update({name: Path(args.prefix + end) for name, end in _PREFIXED.items()})
    if not written:
        raise InputError(f"nothing to write: give at least one of --prefix, {', '.join(map(option, _SUFFIXES))}")
    return written


def option(name: str) -> str:
    """The option that names a file."""
    return "--" + name.replace("_", "-")


def wants_inverse(files: dict[str, Path]) -> bool:
    """Whether any of the files needs the inverse map."""
    return not files.keys().isdisjoint(("inverse_warp", "inverse_composite", "prefix_inverse_warp"))


def write_files(
    files: dict[str, Path],
    result: Result,
    moving: Image,
    fixed: Image,
    labels: Image | None,
    background: float | None,
    total: bool,
) -> None:
    """Write them.

    Args:
        files: from :func:`files_to_write`.
        result: what the registration found.
        moving, fixed: the images.
        labels: of the moving image, where moved labels are to be written.
        background: value outside the moving image's field of view; None: the usual one.
        total: whether the Jacobian includes the affine map.
    """
    background = background_of(moving, background)
    transform = result.transform
    if not files.keys().isdisjoint(("moved", "prefix_moved", "figure")):
        moved = transform.apply(moving.data[None], moving.grid, fixed.grid, background=background)[0]
        for name in ("moved", "prefix_moved"):
            if name in files:
                write_image(files[name], moved, fixed)
        if "figure" in files:
            # Drawing needs matplotlib, which takes longer to load than a small registration.
            from regnet.report import four_panels

            there = resample(moving.data[None], moving.grid, fixed.grid, background=background)[0]
            four_panels(fixed.data, there, moved, result.forward.flow, files["figure"], fixed.grid)
    if labels is not None and "moved_labels" in files:
        moved_labels = transform.apply_labels(labels.data[None], labels.grid, fixed.grid)[0]
        write_image(files["moved_labels"], moved_labels, fixed, dtype=labels.stored_dtype)
    if "jacobian" in files:
        scale = float(torch.linalg.det(result.affine.matrix)) if total else 1.0
        write_image(files["jacobian"], ops.jacobian_determinant(result.forward.flow[None])[0] * scale, fixed)
    if result.uncertainty is not None:
        write_image(files["uncertainty"], result.uncertainty, fixed)
    if "warp" in files:
        write_transform(files["warp"], transform.on(fixed.grid), fixed)
    if "inverse_warp" in files:
        write_transform(files["inverse_warp"], result.inverse_on(moving.grid), moving)
    if "displacement" in files:
        write_transform(files["displacement"], transform, fixed, target="learn2reg", moving=moving)
    if "prefix_affine" in files:
        write_transform(files["prefix_affine"], result.affine)
        write_transform(files["prefix_warp"], result.forward, fixed)
        write_transform(files["prefix_inverse_warp"], result.backward, fixed)
    if "composite" in files:
        write_transform(files["composite"], transform, fixed)
        write_transform(files["inverse_composite"], result.inverse, fixed)


def _inverse_name(path: Path) -> Path:
    """``x.h5`` -> ``xInverse.h5``."""
    return path.with_name(f"{path.name.removesuffix(path.suffix)}Inverse{path.suffix}")
