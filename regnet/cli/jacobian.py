"""``regnet jacobian``: where a transform grows and shrinks."""

import argparse
import math
from pathlib import Path
from typing import Any

import torch

from regnet.cli.options import add_overwrite, add_threads, check_axes, set_threads
from regnet.cli.output import check_suffix, outputs
from regnet.cli.transforms import add_transform, file_of, read_images, read_word
from regnet.errors import InputError
from regnet.io import write_image
from regnet.io.image import SUFFIXES
from regnet.spatial import affine_apart, determinant

_LEAST = 1e-9  # what a logarithm takes instead of 0 and less, as Learn2Reg


def add_parser(subparsers: Any) -> None:
    """Declare the verb and its options."""
    parser = subparsers.add_parser(
        "jacobian",
        help="map how a transform changes volumes",
        description="Write the determinant of a transform's Jacobian on the fixed grid: below 1 where the moving "
        "structure was enlarged to fit, 0 and less where the transform folds. Of a file with affine parts these are "
        "left out unless --total.",
    )
    add_transform(parser)
    parser.add_argument("--total", action="store_true", help="with the affine parts")
    parser.add_argument("--log", action="store_true", help=f"the natural logarithm; where it folds that of {_LEAST:g}")
    parser.add_argument("--out", type=Path, required=True, help="image to write, on the grid of --fixed or the field's")
    add_threads(parser)
    add_overwrite(parser)


def run(args: argparse.Namespace) -> int:
    """Do what the options say; errors are raised for :func:`regnet.cli.main.main` to tell."""
    set_threads(args.threads)
    check_suffix(args.out, SUFFIXES, "--out")
    with outputs([args.out], args.overwrite, [file_of(args.transform), args.moving, args.fixed]):
        moving, fixed = read_images(args)
        transform = read_word(args.transform, args.source, moving, fixed)
        if fixed is not None:
            check_axes(args.transform, transform, fixed)
        grid = fixed.grid if fixed is not None else transform.home
        if grid is None:
            raise InputError(f"{args.transform}: has no grid of its own; give --fixed")
        values = determinant(transform, grid, total=False)
        folded = float((values <= 0).double().mean())
        _, affine = affine_apart(transform)
        scale = float(torch.linalg.det(affine.matrix)) if args.total else 1.0
        values = values.clamp(min=_LEAST).log() + math.log(abs(scale)) if args.log else values * scale
        write_image(args.out, values, fixed or grid)
    if not args.total and not torch.equal(affine.matrix, torch.eye(len(affine.matrix), dtype=torch.float64)):
        print("affine part left out (--total keeps it)")
    print(f"folded voxels: {100 * folded:.4f} %")
    print(args.out)
    return 0
