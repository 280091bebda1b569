"""Options that several verbs share, and what they mean."""

import argparse

import torch
from torch import Tensor

from regnet.errors import InputError
from regnet.io import Image


def add_background(parser: argparse.ArgumentParser) -> None:
    """Declare ``--background``."""
    parser.add_argument(
        "--background",
        type=float,
        help="value outside the moving image's field of view; default: 0, or the minimum of an image that goes below",
    )


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Declare ``--threads``."""
    parser.add_argument("--threads", type=int, help="processor threads; default: all that torch takes")


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Declare ``--overwrite``."""
    parser.add_argument("--overwrite", action="store_true", help="replace outputs that exist")


def set_threads(count: int | None) -> None:
    """Set the number of processor threads, of torch and of the compiled core.

    Raises:
        InputError: less than one.
    """
    if count is None:
        return
    if count < 1:
        raise InputError(f"--threads {count}: at least 1 is needed")
    torch.set_num_threads(count)


def background_of(image: Image, asked: float | None = None) -> float:
    """The value outside the field of view: as asked, else 0, or the minimum of an image that goes below 0."""
    return min(0.0, float(image.data.min())) if asked is None else asked


def foreground_of(image: Image) -> Tensor:
    """Where the first channel is above its background, ``(1, 1, *spatial)``: the mask of a fixed image without one."""
    return (image.data[:1] > background_of(image))[None]
