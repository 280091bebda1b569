"""Options that several verbs share, and what they mean."""

import argparse
import math
import os
import sys
from collections.abc import Sequence

import torch

from regnet.data.foreground import background_of as background_of
from regnet.data.foreground import foreground_of as foreground_of
from regnet.errors import InputError
from regnet.io import Image, ImageFile
from regnet.spatial import Grid, Transform


def add_background(parser: argparse.ArgumentParser) -> None:
    """Declare ``--background``."""
    parser.add_argument(
        "--background",
        type=_float32,
        help="value outside the moving image's field of view; default: 0, or the minimum of an image that goes below",
    )


def _float32(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{word} is not a finite number; other programs cannot show such voxels")
    if abs(value) > torch.finfo(torch.float32).max:
        raise argparse.ArgumentTypeError(f"{word} does not fit into float32")
    return value


def find_trusted(packages: Sequence[str]) -> None:
    """Let trusted packages be found from where the user stands, as in training."""
    if packages and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Declare ``--threads``."""
    parser.add_argument("--threads", type=int, help="processor threads; default: all that torch takes")


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Declare ``--overwrite``."""
    parser.add_argument("--overwrite", action="store_true", help="replace outputs that exist")


_MOST_THREADS = 1024


def set_threads(count: int | None) -> None:
    """Set the number of processor threads, of torch and of the compiled core.

    Raises:
        InputError: less than one, or more than a process gets.
    """
    if count is None:
        return
    if not 1 <= count <= _MOST_THREADS:
        raise InputError(f"--threads {count}: from 1 to {_MOST_THREADS}")
    torch.set_num_threads(count)


def check_axes(name: object, grid: Grid | Transform, fixed: Image | ImageFile) -> None:
    """Refuse an image or transform, called ``name``, that has another number of axes than the fixed image.

    Raises:
        InputError: it has; the message names both.
    """
    if grid.ndim != fixed.grid.ndim:
        raise InputError(f"{name}: is {grid.ndim}-D, but {fixed.name} is {fixed.grid.ndim}-D")
