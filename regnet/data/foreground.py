"""What of an image is background."""

import math

from torch import Tensor

from regnet.io.image import Image


def background_of(image: Image, asked: float | None = None) -> float:
    """The value outside the field of view: as asked, else 0, or the (finite) minimum of an image that goes below 0."""
    if asked is not None:
        return asked
    lowest = float(image.data.min())
    if not math.isfinite(lowest):
        lowest = float(image.data.nan_to_num(0.0, 0.0, 0.0).min())
    return min(0.0, lowest)


def foreground_of(image: Image) -> Tensor:
    """Where the first channel is above its background, ``(1, 1, *spatial)``: the mask of a fixed image without one."""
    return (image.data[:1] > background_of(image))[None]
