"""Transforms as the verbs name them."""

import argparse
from pathlib import Path

from regnet.errors import InputError
from regnet.io import CONVENTIONS, Image, read_image, read_transform
from regnet.spatial import Transform

INVERSE = ":inverse"


def add_transform(parser: argparse.ArgumentParser) -> None:
    """Declare the one transform that a verb takes, and how it is read."""
    parser.add_argument(
        "transform",
        metavar="T[:inverse]",
        help="transform, fixed -> moving: ITK .nii.gz .mat .txt .tfm .h5, FSL .mat and warps, FreeSurfer .lta .mgz, "
        "Learn2Reg, NiftyReg, SPM; `:inverse` inverts it",
    )
    add_source(parser)


def add_source(parser: argparse.ArgumentParser) -> None:
    """Declare ``--from``, ``--moving`` and ``--fixed``: what a file does not say itself."""
    parser.add_argument(
        "--from",
        dest="source",
        choices=CONVENTIONS,
        help="whose file it is, where its content does not say; ras: a plain matrix, fixed -> moving, RAS mm",
    )
    parser.add_argument("--moving", type=Path, help="moving image; the files of FSL, FreeSurfer and Learn2Reg need it")
    parser.add_argument("--fixed", type=Path, help="fixed image; the grid of fields that have none of their own")


def add_target(parser: argparse.ArgumentParser) -> None:
    """Declare ``--to``."""
    parser.add_argument("--to", dest="target", choices=CONVENTIONS, help="for whom; default: by the suffix of --out")


def read_images(args: argparse.Namespace) -> tuple[Image | None, Image | None]:
    """The moving and the fixed image, where they are given.

    Raises:
        InputError: they cannot be read, or one is 2-D and the other 3-D.
    """
    moving, fixed = (None if path is None else read_image(path) for path in (args.moving, args.fixed))
    if moving and fixed and moving.grid.ndim != fixed.grid.ndim:
        raise InputError(
            f"{moving.name} and {fixed.name}: are {moving.grid.ndim}-D and {fixed.grid.ndim}-D; give two of a kind"
        )
    return moving, fixed


def read_word(word: str, source: str | None, moving: Image | None, fixed: Image | None) -> Transform:
    """The transform that ``FILE`` or ``FILE:inverse`` names."""
    if not word.endswith(INVERSE):
        return read_transform(word, source, moving, fixed)
    # The file itself points from the moving to the fixed image, so its two images change places.
    return read_transform(word.removesuffix(INVERSE), source, fixed, moving).inverse()


def file_of(word: str) -> str:
    """The file that a word names."""
    return word.removesuffix(INVERSE)
