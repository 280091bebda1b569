"""``regnet report``: a page that shows what came out."""

import argparse
from pathlib import Path
from typing import Any

from regnet.cli import report_sweep
from regnet.errors import InputError

_KINDS = {"sweep": report_sweep.run}


def add_parser(subparsers: Any) -> None:
    """Declare the verb and its options."""
    parser = subparsers.add_parser(
        "report",
        help="make a page of results",
        description="Make one HTML page, with nothing from the net, of a sweep: its trials, its Pareto front and what "
        "mattered; and write the best trial as an experiment file.",
        epilog="example: regnet report sweep logs/default/grid",
    )
    parser.add_argument("kind", choices=sorted(_KINDS), help="what it is a report of")
    parser.add_argument("folder", type=Path, metavar="DIR", help="where it is: of a sweep its hydra.sweep.dir")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the page; default: DIR/index.html")


def run(args: argparse.Namespace) -> int:
    """Do what the options say; errors are raised for :func:`regnet.cli.main.main` to tell."""
    if not args.folder.is_dir():
        raise InputError(f"{args.folder}: no such folder")
    return _KINDS[args.kind](args.folder, args.out)
