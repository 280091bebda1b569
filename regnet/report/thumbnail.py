"""A small picture of a pair: the fixed and the moved image side by side."""

import numpy as np
import PIL.Image

from regnet.report.planes import planes_of
from regnet.report.registration import Registration
from regnet.report.strips import grey, window_of
from regnet.report.upright import upright

_HEIGHT = 72  # pixels


def thumbnail(registration: Registration) -> str:
    """A JPEG as a data URI, through the middle of what stands out."""
    images, _, spacing = upright(
        [registration.fixed.float(), registration.moved.float()], registration.flow, registration.grid
    )
    plane = planes_of(images, spacing)[0]
    size = max(1, round(_HEIGHT * plane.size[0] / plane.size[1])), _HEIGHT
    halves = []
    for image in images:
        slices = plane.cut(image)[len(plane.at) // 2]
        low, high = window_of(slices)
        small = PIL.Image.fromarray(slices.astype(np.float32)).resize(size, PIL.Image.Resampling.BILINEAR)
        halves.append((np.asarray(small) - low) / (high - low))
    return grey(np.concatenate(halves, axis=1)[None], (0, 1), 4 * _HEIGHT)
