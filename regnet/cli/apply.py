"""``regnet apply``: an image or label map along one transform or several, interpolated once."""

import argparse
from pathlib import Path
from typing import Any

import torch

from regnet.cli.options import add_background, add_overwrite, add_threads, background_of, check_axes, set_threads
from regnet.cli.output import check_suffix, outputs
from regnet.errors import InputError
from regnet.io import Image, read_image, read_labels, read_transform, write_image
from regnet.io.writer import SUFFIXES
from regnet.spatial import Transform, compose

_INVERSE = ":inverse"
_EXACT = 2**24  # whole numbers up to here are float32's
_ORDERS = {"nearest": 0, "linear": 1, "cubic": 3}


def add_parser(subparsers: Any) -> None:
    """Declare the verb and its options."""
    parser = subparsers.add_parser(
        "apply",
        help="carry an image or label map along a transform",
        description="Resample an image or label map on the grid of a reference image, along transforms.",
    )
    parser.add_argument("--moving", type=Path, required=True, help="image or label map to resample")
    parser.add_argument("--reference", type=Path, required=True, help="image whose grid the result has (the fixed one)")
    parser.add_argument(
        "-t",
        "--transform",
        action="append",
        default=[],
        metavar="T[:inverse]",
        help="displacement field, fixed -> moving, as `regnet register --warp` or ANTs writes it; several: as ANTs, "
        "the last given touches the image first; none: the same place in the world; `:inverse` inverts it",
    )
    parser.add_argument(
        "--interp",
        choices=("nearest", "linear", "cubic", "label"),
        default="linear",
        help="linear (default) or cubic for images; nearest, or label (the label that weighs most among the "
        "neighbours) for label maps, whose integers and type are kept",
    )
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    add_background(parser)
    add_threads(parser)
    add_overwrite(parser)


def run(args: argparse.Namespace) -> int:
    """Do what the options say; errors are raised for :func:`regnet.cli.main.main` to tell."""
    set_threads(args.threads)
    check_suffix(args.out, SUFFIXES, "--out")
    read = [args.moving, args.reference, *(word.removesuffix(_INVERSE) for word in args.transform)]
    with outputs([args.out], args.overwrite, read):
        reference = read_image(args.reference)
        moving = _read_moving(args.moving, args.interp)
        check_axes(moving.name, moving.grid, reference)
        transforms = [_read(word) for word in args.transform]
        for word, transform in zip(args.transform, transforms, strict=True):
            check_axes(word, transform, reference)
        transform = compose(transforms, reference.grid)
        if moving.data.is_floating_point():
            background = background_of(moving, args.background)
            data = transform.apply(moving.data[None], moving.grid, order=_ORDERS[args.interp], background=background)
            write_image(args.out, data[0], reference)
        else:
            data = transform.apply_labels(
                moving.data[None],
                moving.grid,
                mode="nearest" if args.interp == "nearest" else "linear",
                background=_whole(args.background, moving),
            )
            write_image(args.out, data[0], reference, dtype=moving.stored_dtype)
    print(args.out)
    return 0


def _read(word: str) -> Transform:
    if word.endswith(_INVERSE):
        return read_transform(word.removesuffix(_INVERSE)).inverse()
    return read_transform(word)


def _read_moving(path: Path, interp: str) -> Image:
    """With its integers where labels are meant.

    That is for ``label``, and for ``nearest`` when the file holds integers, or whole numbers that float32 does not.
    """
    if interp == "label":
        return read_labels(path)
    image = read_image(path)
    integers = image.stored_dtype is None or image.stored_dtype.kind in "iu"
    wide = float(image.data.abs().max()) >= _EXACT
    if interp == "nearest" and (integers or wide) and torch.equal(image.data, image.data.round()):
        return read_labels(path)
    return image


def _whole(background: float | None, labels: Image) -> int:
    if background is None:
        return 0
    if not background.is_integer():
        raise InputError(f"--background {background:g}: a label map needs a whole number")
    held = torch.iinfo(labels.data.dtype)
    if not held.min <= background <= held.max:
        raise InputError(f"--background {background:g}: {labels.name} holds labels from {held.min} to {held.max}")
    return int(background)
