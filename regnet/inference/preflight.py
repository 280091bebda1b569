"""Before the work: what will fail, in words."""

import math
import warnings

import torch
from torch import Tensor

from regnet.errors import InputError
from regnet.inference.affine import Aligner
from regnet.io.image import Image
from regnet.io.sound import check_place
from regnet.spatial.affine import Affine

# Fields of view that differ by more than this are in different units, or of different things.
_SIZES = 20.0
# Millimetres between which the spacing of a medical image lies: a tenth of a micron, a tenth of a metre.
_SPACING = (1e-4, 1e2)
# A mirrored or turned image must explain so much more to be suspected, and be turned by so many degrees.
_CLEARLY, _TURNED = 1.2, 60.0


def check_pair(moving: Image, fixed: Image) -> None:
    """Refuse two images that cannot be registered whatever is done.

    Raises:
        InputError: the images differ in their number of axes or channels, or a spacing or an offset is absurd, or one
            is many times as large as the other; the message names what was found.
    """
    for what, a, b in (
        ("axes", moving.grid.ndim, fixed.grid.ndim),
        ("channels", moving.data.shape[0], fixed.data.shape[0]),
    ):
        if a != b:
            raise InputError(f"{moving.name} and {fixed.name}: cannot be registered: they have {a} and {b} {what}")
    for image in (moving, fixed):
        check_place(image.grid, image.name)
        if not all(_SPACING[0] <= step <= _SPACING[1] for step in image.grid.spacing):
            steps = " x ".join(f"{step:.3g}" for step in image.grid.spacing)
            raise InputError(
                f"{image.name}: a spacing of {steps} mm is absurd; mend the header (is it in other units?)"
            )
    sizes = [_extent(image) for image in (moving, fixed)]
    if max(sizes) > _SIZES * min(sizes):
        raise InputError(
            f"{moving.name} and {fixed.name}: fields of view of {sizes[0]:.3g} and {sizes[1]:.3g} mm do not go "
            "together; mend the header of the one that is in other units"
        )


def check_overlap(moving: Image, fixed: Image, init: str) -> None:
    """Refuse two images that lie in different places of the world.

    Raises:
        InputError: they do.
    """
    if not moving.grid.overlaps(fixed.grid):
        raise InputError(
            f"{moving.name} and {fixed.name}: do not overlap in the world"
            + ("; --init affine finds them" if init == "none" else f" after --init {init}; give another")
        )


def warn_of_orientation(aligner: Aligner, moving: Image, fixed: Image, affine: Affine) -> None:
    """Warn where the images fit clearly better mirrored, or turned far from where ``affine`` puts them."""
    names = f"{moving.name} and {fixed.name}"
    plain, mirrored = aligner.pose(), aligner.pose(mirrored=True)
    here, there, seen = aligner.gains(torch.stack([affine.matrix, plain, mirrored]))
    if seen > _CLEARLY * max(here, there):
        warnings.warn(
            f"{names}: fit clearly better when one is mirrored; is left-right flipped in a header?", stacklevel=2
        )
    turn = degrees_of(torch.linalg.solve(affine.matrix, plain)[:-1, :-1])
    if there > _CLEARLY * here and turn > _TURNED:
        warnings.warn(
            f"{names}: fit clearly better when one is turned by {turn:.0f} degrees; does a header name the wrong axes? "
            "--init affine turns it",
            stacklevel=2,
        )


def warn_of_turn(moving: Image, fixed: Image, affine: Affine) -> None:
    """Warn where the affine stage has turned the moving image further than heads lie in scanners."""
    turn = degrees_of(affine.matrix[:-1, :-1])
    if turn > _TURNED:
        warnings.warn(
            f"{moving.name} and {fixed.name}: the affine stage turns one by {turn:.0f} degrees; does a header name the "
            "wrong axes? Look at the moved image",
            stacklevel=2,
        )


def _extent(image: Image) -> float:
    """The geometric mean of the sides of the field of view, mm."""
    return math.prod(n * s for n, s in zip(image.grid.shape, image.grid.spacing, strict=True)) ** (1 / image.grid.ndim)


def degrees_of(linear: Tensor) -> float:
    """The angle of the turn nearest to a linear map ``(D, D)``."""
    left, _, right = torch.linalg.svd(linear)
    trace = float((left @ right).trace())
    cosine = (trace - 1) / 2 if len(linear) == 3 else trace / 2
    return math.degrees(math.acos(max(-1.0, min(1.0, cosine))))
