"""The slices of a plane below each other in one picture, which a page moves past a window: as data URIs and SVG."""

import base64
import io
from typing import Any

import numpy as np
import PIL.Image
from contourpy import LineType, contour_generator

from regnet.report.scale import Scale

_QUALITY = 82
_HEADROOM = 0.06


def grey(slices: np.ndarray, window: tuple[float, float], longest: int) -> str:
    """A JPEG of slices ``(slices, height, width)``; black and white are the two values of the window.

    Slices are made smaller where their longer side has more pixels than ``longest``.
    """
    low, high = window
    levels = np.clip((slices - low) / max(high - low, 1e-12), 0, 1) * 255
    picture = PIL.Image.fromarray(_stacked(levels, longest, PIL.Image.Resampling.BOX).round().astype(np.uint8))
    return data_uri(picture, "JPEG", quality=_QUALITY)


def window_of(*slices: np.ndarray) -> tuple[float, float]:
    """What is black and what is white of some pictures: their 1st percentile, and a little above their 99.5th."""
    low, high = np.percentile(np.concatenate([each.ravel() for each in slices]), (1, 99.5))
    return float(low), float(high + _HEADROOM * (high - low) if high > low else low + 1)


def coloured(slices: np.ndarray, scale: Scale, longest: int) -> str:
    """A PNG of slices ``(slices, height, width)``, made smaller as there: each pixel is one voxel's colour, exactly."""
    levels = _stacked(scale.steps(slices), longest, PIL.Image.Resampling.NEAREST)
    picture = PIL.Image.fromarray(levels.astype(np.uint8)).convert("P")
    picture.putpalette(scale.colours.tobytes())
    return data_uri(picture, "PNG", optimize=True)


def outlines(slices: np.ndarray) -> str:
    """An SVG path around every label of slices ``(slices, height, width)``, in voxels of the strip."""
    parts: list[str] = []
    for number, labels in enumerate(slices):
        for label in np.unique(labels[labels != 0]):
            # A margin closes the outlines at the edges.
            field = np.pad((labels == label).astype(np.float32), 1)
            lines = contour_generator(z=field, line_type=LineType.Separate).lines(0.5)
            parts.extend(_path(np.asarray(line) - 0.5, number * slices.shape[1]) for line in lines)
    return "".join(parts)


def _path(line: np.ndarray, top: int) -> str:
    """One closed line, in halves of voxels relative to the point before: so outlines have whole numbers."""
    points = np.round(2 * line).astype(int)
    deltas = np.diff(points, axis=0)
    keep = np.ones(len(deltas), dtype=bool)
    keep[:-1] = (deltas[1:] != deltas[:-1]).any(1)  # of a straight run, its end
    ends = points[1:][keep]
    moves = np.diff(ends, axis=0, prepend=points[:1])
    start = points[0] + (0, 2 * top)
    return f"M{start[0]} {start[1]}l" + " ".join(f"{x} {y}" for x, y in moves.tolist())


def _stacked(slices: np.ndarray, longest: int, how: PIL.Image.Resampling) -> np.ndarray:
    """The slices below each other, made smaller where they are large."""
    _, height, width = slices.shape
    factor = min(1.0, longest / max(height, width))
    if factor < 1:
        size = max(1, round(width * factor)), max(1, round(height * factor))
        pictures = [PIL.Image.fromarray(each.astype(np.float32)).resize(size, how) for each in slices]
        slices = np.stack([np.asarray(picture) for picture in pictures])
    return slices.reshape(-1, slices.shape[-1])


def data_uri(picture: PIL.Image.Image, kind: str, **options: Any) -> str:
    """A picture as an address that holds it; ``options`` as of its ``save``."""
    stream = io.BytesIO()
    picture.save(stream, kind, **options)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(stream.getvalue()).decode()}"
