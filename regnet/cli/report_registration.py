"""``regnet report TRANSFORM``: the page of one pair."""

import argparse
from pathlib import Path

import torch

from regnet import __version__
from regnet.cli.output import check_suffix, outputs
from regnet.data.table import Pair
from regnet.errors import InputError
from regnet.inference.case import Case
from regnet.inference.manifest import describe_inputs
from regnet.inference.meaning import MEANING
from regnet.inference.scene import scene
from regnet.io import atomic_path

_ENDS = (".nii.gz", ".nii", ".h5", ".mat", ".txt", ".tfm", ".lta", ".mgz", ".npz")


def run(args: argparse.Namespace) -> int:
    """Write the page and print its name."""
    from regnet.report.pair_page import pair_page  # drawing takes long to load

    transforms = tuple(Path(word) for word in args.what)
    for path in transforms:
        if not path.is_file():
            raise InputError(f"{path}: no such file or folder")
    if not args.moving or not args.fixed:
        raise InputError(f"{transforms[0]}: is no folder; for the report of a transform give --moving and --fixed")
    if (args.moving_labels is None) != (args.fixed_labels is None):
        raise InputError("--moving-labels and --fixed-labels belong together: give both or neither")
    out = args.out or transforms[0].with_name(_stem(transforms[0]) + ".html")
    check_suffix(out, (".html", ".htm"), "--out")
    case = Case(
        Pair(
            id=_stem(transforms[0]),
            moving=tuple(args.moving),
            fixed=tuple(args.fixed),
            moving_labels=args.moving_labels,
            fixed_labels=args.fixed_labels,
            fixed_mask=args.mask,
        ),
        transforms,
        args.inverse,
    )
    with outputs([out], args.overwrite, list(case.files())):
        about = {"version": __version__, "torch": torch.__version__, "inputs": describe_inputs(case.files())}
        seen = scene(case, about)
        with atomic_path(out, overwrite=True) as temporary:
            temporary.write_text(pair_page(seen, MEANING), encoding="utf-8")
    for remark in seen.remarks():
        print(remark.text)
    print(out)
    return 0


def _stem(path: Path) -> str:
    end = next((end for end in _ENDS if path.name.lower().endswith(end)), path.suffix)
    return path.name[: len(path.name) - len(end)]
