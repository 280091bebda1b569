"""``regnet convert``: a transform file of one tool for another."""

import argparse
from pathlib import Path
from typing import Any

from regnet.cli.options import add_overwrite, check_axes
from regnet.cli.output import outputs
from regnet.cli.progress import progress
from regnet.cli.transforms import add_target, add_transform, file_of, read_images, read_word
from regnet.io import target_of, write_transform


def add_parser(subparsers: Any) -> None:
    """Declare the verb and its options."""
    parser = subparsers.add_parser(
        "convert",
        help="write a transform for another tool",
        description="Write a transform of one tool for another. It stays the same map of the world, fixed -> moving.",
    )
    add_transform(parser)
    add_target(parser)
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        help="file to write: .nii.gz (fields), .h5, .mat, .txt, .tfm, .lta, .mgz, .npz",
    )
    add_overwrite(parser)


def run(args: argparse.Namespace) -> int:
    """Do what the options say; errors are raised for :func:`regnet.cli.main.main` to tell."""
    target_of(args.out, args.target)
    with outputs([args.out], args.overwrite, [file_of(args.transform), args.moving, args.fixed]):
        moving, fixed = read_images(args)
        transform = read_word(args.transform, args.source, moving, fixed)
        for image in (moving, fixed):
            if image is not None:
                check_axes(args.transform, transform, image)
        with progress(f"writing {args.out.name}"):
            write_transform(args.out, transform, fixed, args.overwrite, args.target, moving)
    print(args.out)
    return 0
