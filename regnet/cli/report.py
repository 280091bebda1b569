"""``regnet report``: a page that shows what came out."""

import argparse
from pathlib import Path
from typing import Any

from regnet.cli import report_cohort, report_registration, report_run, report_sweep
from regnet.cli.options import add_overwrite, add_threads, set_threads
from regnet.errors import InputError


def add_parser(subparsers: Any) -> None:
    """Declare the verb and its options."""
    parser = subparsers.add_parser(
        "report",
        help="make a page of results",
        description="Make HTML pages that need nothing but a browser, and nothing from the net: of a registration, of "
        "all pairs of a cohort with an index, of a training run, or of a sweep. What it is a report of is seen from "
        "the folder or file.",
    )
    parser.add_argument(
        "what",
        nargs="+",
        metavar="DIR|TRANSFORM",
        help="folder of a cohort, a run or a sweep; or the transform, fixed -> moving, of a pair, in the order of "
        "ANTs where it is several files",
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="the page; default: TRANSFORM.html, RUN/report.html, SWEEP/index.html; of a cohort the folder for "
        "index.html and pairs/ID.html, default: DIR/report",
    )
    pair = parser.add_argument_group("of a transform")
    pair.add_argument("--moving", type=Path, nargs="+", help="moving image; several are channels")
    pair.add_argument("--fixed", type=Path, nargs="+", help="fixed image")
    pair.add_argument("--moving-labels", type=Path, help="label map of the moving image; outlined and measured")
    pair.add_argument("--fixed-labels", type=Path, help="label map of the fixed image")
    pair.add_argument(
        "--mask", type=Path, help="on the fixed image's voxels: where it counts; default: above its background"
    )
    pair.add_argument("--inverse", type=Path, help="the map moving -> fixed, to say how well the two invert each other")
    parser.add_argument("--jobs", type=int, default=1, help="pairs of a cohort at a time; default: 1")
    add_threads(parser)
    add_overwrite(parser)


def run(args: argparse.Namespace) -> int:
    """Do what the options say; errors are raised for :func:`regnet.cli.main.main` to tell."""
    set_threads(args.threads)
    if args.what[0] == "sweep" and len(args.what) == 2:
        args.what = args.what[1:]
    folder = Path(args.what[0])
    if not folder.is_dir():
        return report_registration.run(args)
    if len(args.what) > 1:
        raise InputError(f"{folder}: is a folder; give one folder, or the files of one transform")
    if (folder / "manifests").is_dir():
        return report_cohort.run(args, folder)
    if report_sweep.is_sweep(folder):
        return report_sweep.run(folder, args.out)
    if (folder / "config.yaml").is_file():
        return report_run.run(args, folder)
    raise InputError(
        f"{folder}: neither the --out of `regnet register --pairs` (manifests/) nor the folder of a training run "
        "(config.yaml) or of a sweep"
    )
