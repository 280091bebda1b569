"""``regnet compose``: several transforms as one file."""

import argparse
from pathlib import Path
from typing import Any

from regnet.cli.options import add_overwrite, check_axes
from regnet.cli.output import outputs
from regnet.cli.transforms import add_target, file_of, read_word
from regnet.io import CONVENTIONS, read_image, target_of, write_transform
from regnet.spatial import Affine, chain, compose


def add_parser(subparsers: Any) -> None:
    """Declare the verb and its options."""
    parser = subparsers.add_parser(
        "compose",
        help="make one transform of several",
        description="Make one transform of several. In .h5, .txt and .tfm the parts are kept, each exact; other files "
        "hold one field on the grid of the reference image, or one matrix where all parts are affine.",
    )
    parser.add_argument(
        "-t",
        "--transform",
        action="append",
        required=True,
        metavar="T[:inverse]",
        help="transform, fixed -> moving; several: as ANTs, the last given touches the image first; `:inverse` inverts",
    )
    parser.add_argument("--reference", type=Path, required=True, help="image whose grid the result has (the fixed one)")
    parser.add_argument("--moving", type=Path, help="moving image; the files of FSL, FreeSurfer and Learn2Reg need it")
    parser.add_argument("--from", dest="source", choices=CONVENTIONS, help="whose files they are, if they do not say")
    add_target(parser)
    parser.add_argument("--out", type=Path, required=True, help="file to write, as `regnet convert`")
    add_overwrite(parser)


def run(args: argparse.Namespace) -> int:
    """Do what the options say; errors are raised for :func:`regnet.cli.main.main` to tell."""
    target, suffix = target_of(args.out, args.target)
    read = [*map(file_of, args.transform), args.reference, args.moving]
    with outputs([args.out], args.overwrite, read):
        reference = read_image(args.reference)
        moving = None if args.moving is None else read_image(args.moving)
        transforms = [read_word(word, args.source, moving, reference) for word in args.transform]
        for word, transform in zip(args.transform, transforms, strict=True):
            check_axes(word, transform, reference)
        whole = chain(transforms)
        in_parts = isinstance(whole, Affine) or (target == "itk" and suffix not in (".nii", ".nii.gz"))
        result = whole if in_parts else compose(transforms, reference.grid)
        write_transform(args.out, result, reference, args.overwrite, args.target, moving)
    print(args.out)
    return 0
