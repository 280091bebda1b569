"""``regnet invert``: the way back, and how well it goes."""

import argparse
from pathlib import Path
from typing import Any

from torch import Tensor

from regnet.cli.options import add_overwrite, add_threads, check_axes, set_threads
from regnet.cli.output import outputs
from regnet.cli.transforms import add_target, file_of, read_word
from regnet.errors import InputError
from regnet.io import CONVENTIONS, Image, read_image, target_of, write_transform
from regnet.spatial import Affine, Grid, Inverse, Transform, determinant, invert


def add_parser(subparsers: Any) -> None:
    """Declare the verb and its options."""
    parser = subparsers.add_parser(
        "invert",
        help="invert a transform and say how exactly",
        description="Invert a transform on the grid of the moving image, by Newton's method at every voxel, and say "
        "what is left of forward after inverse, and where there is no inverse because the transform folds. An affine "
        "map is inverted exactly.",
    )
    parser.add_argument("transform", metavar="T", help="transform, fixed -> moving")
    parser.add_argument("--reference", type=Path, required=True, metavar="MOVING", help="image whose grid it gets")
    parser.add_argument("--fixed", type=Path, help="fixed image; the files of FSL, FreeSurfer and Learn2Reg need it")
    parser.add_argument("--from", dest="source", choices=CONVENTIONS, help="whose file it is, if it does not say")
    add_target(parser)
    parser.add_argument("--tolerance", type=float, default=1e-3, help="in voxels; default: 0.001")
    parser.add_argument("--out", type=Path, required=True, help="file to write, as `regnet convert`")
    add_threads(parser)
    add_overwrite(parser)


def run(args: argparse.Namespace) -> int:
    """Do what the options say; errors are raised for :func:`regnet.cli.main.main` to tell."""
    if not args.tolerance > 0:
        raise InputError(f"--tolerance {args.tolerance:g}: a number of voxels above 0 is needed")
    set_threads(args.threads)
    target_of(args.out, args.target)
    with outputs([args.out], args.overwrite, [file_of(args.transform), args.reference, args.fixed]):
        moving = read_image(args.reference)
        fixed = None if args.fixed is None else read_image(args.fixed)
        transform = read_word(args.transform, args.source, moving, fixed)
        check_axes(args.transform, transform, moving)
        if isinstance(transform, Affine):
            write_transform(args.out, transform.inverse(), moving, args.overwrite, args.target, fixed)
            print("affine: inverted exactly")
        else:
            found = invert(transform, moving.grid, tolerance=args.tolerance)
            write_transform(args.out, found.transform, moving, args.overwrite, args.target, fixed)
            _tell(found, transform, moving, args.tolerance)
    print(args.out)
    return 0


def _tell(found: Inverse, transform: Transform, moving: Image, tolerance: float) -> None:
    voxel = min(moving.grid.spacing)
    mean, most = float(found.residual.mean()), float(found.residual.max())
    print(
        f"forward after inverse misses by {mean:.2g} mm on average, {most:.2g} mm at most "
        f"({mean / voxel:.2g} and {most / voxel:.2g} voxels)"
    )
    for missed, why in ((found.leaves, ", which come from beyond the field's grid"), (~found.leaves, "")):
        missed = missed & ~found.found
        if bool(missed.any()):
            where = _where(missed[0], moving.grid)
            print(f"no inverse within {tolerance:g} voxels at {where} of the moving image{why}")
    home = transform.home or moving.grid
    folded = determinant(transform, home, total=False)[0] <= 0
    if bool(folded.any()):
        print(f"the transform folds at {_where(folded, home)} of its grid; what comes from there has several inverses")
    else:
        print("the transform folds nowhere")


def _where(mask: Tensor, grid: Grid) -> str:
    """How many voxels are meant, and about where."""
    at = mask.nonzero()
    low, high = (grid.to_world(corner).tolist() for corner in (at.amin(0), at.amax(0)))
    first, last = (f"({', '.join(f'{x:.1f}' for x in corner)})" for corner in (low, high))
    return f"{len(at)} voxels ({100 * float(mask.double().mean()):.3g} %, from {first} to {last} mm RAS)"
