"""``regnet apply``: images, label maps, series, vectors and points along one transform or several."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from regnet.cli.apply_image import INTERPOLATIONS, Work, apply_image, check_work
from regnet.cli.apply_points import apply_points
from regnet.cli.chain import Link, check_links, read_links
from regnet.cli.options import add_background, add_overwrite, add_threads, set_threads
from regnet.cli.output import check_suffix, outputs
from regnet.errors import InputError
from regnet.io import CONVENTIONS, ImageFile, open_image, read_header, read_points
from regnet.io.image import SUFFIXES
from regnet.io.points import SPACES
from regnet.spatial.vectors import MODES


def add_parser(subparsers: Any) -> None:
    """Declare the verb and its options."""
    parser = subparsers.add_parser(
        "apply",
        help="carry images, labels or points along transforms",
        description="Resample an image, label map, series or vector image on the grid of a reference image, along "
        "transforms that are composed and interpolated once; or carry points along them. A transform points from fixed "
        "to moving: it brings images from moving to fixed, and points from fixed to moving.",
    )
    parser.add_argument("--moving", type=Path, help="image, label map, 4-D series or vector image to resample")
    parser.add_argument("--reference", type=Path, help="image whose grid the result has (the fixed one)")
    parser.add_argument(
        "-t",
        "--transform",
        action="append",
        default=[],
        metavar="T[:inverse]",
        help="transform, fixed -> moving, as `regnet register` or ANTs writes it; several: as ANTs, the last given "
        "touches the image first; none: the same place in the world; `:inverse` inverts it",
    )
    parser.add_argument("--from", dest="source", choices=CONVENTIONS, help="whose files they are, if they do not say")
    parser.add_argument(
        "--interp",
        choices=tuple(INTERPOLATIONS),
        default="linear",
        help="linear (default), cubic or the order of a spline for images; nearest, or label (the label that weighs "
        "most among the neighbours) for label maps, whose integers and type are kept",
    )
    parser.add_argument("--time-index", type=int, metavar="N", help="of a 4-D series only volume N, from 0")
    parser.add_argument(
        "--vectors",
        choices=MODES,
        help="turn vectors as the tissue turns: by the local Jacobian (default of files whose intent says vectors), or "
        "by its rotation alone, which keeps lengths",
    )
    points = parser.add_argument_group("points, in place of --moving")
    points.add_argument("--points", type=Path, help="CSV (x, y, z), .fcsv, .mrk.json, .dat, .label, .json, .txt")
    points.add_argument(
        "--space", choices=SPACES, help="of the points, where their file does not say; of vectors without an intent"
    )
    points.add_argument(
        "--to",
        choices=("moving", "fixed"),
        default="moving",
        help="moving (default): points of the fixed image along the transform; fixed: points of the moving image back. "
        "Points in voxels need the images on both sides: --reference is the fixed one, --moving the moving one",
    )
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    add_background(parser)
    add_threads(parser)
    add_overwrite(parser)


def run(args: argparse.Namespace) -> int:
    """Do what the options say; errors are raised for :func:`regnet.cli.main.main` to tell."""
    set_threads(args.threads)
    if args.points is None:
        check_suffix(args.out, SUFFIXES, "--out")
        if args.moving is None or args.reference is None:
            raise InputError("give --moving and --reference for an image, or --points")
    links = [Link.parse(word) for word in args.transform]
    with outputs([args.out], args.overwrite, [args.moving, args.reference, args.points, *(k.path for k in links)]):
        reference = None if args.reference is None else read_header(args.reference)
        if args.points is not None:
            _points(args, reference, links)
        else:
            assert reference is not None
            _image(args, reference, links)
    print(args.out)
    return 0


def _image(args: argparse.Namespace, reference: ImageFile, links: list[Link]) -> None:
    moving = open_image(args.moving)
    order = INTERPOLATIONS[args.interp]
    work = Work(reference, (), order, args.background, args.vectors, args.space, args.time_index)
    check_work(moving, work)
    chain = read_links(links, args.source, reference, moving)
    check_links(chain, reference, moving)
    apply_image(moving, replace(work, transforms=[link.transform() for link in chain]), args.out)


def _points(args: argparse.Namespace, reference: ImageFile | None, links: list[Link]) -> None:
    points = read_points(args.points, args.space)
    moving = None if args.moving is None else read_header(args.moving)
    chain = read_links(links, args.source, reference, moving)
    apply_points(points, chain, args.to, reference, moving, args.out)
