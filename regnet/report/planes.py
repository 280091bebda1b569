"""Which slices of an upright pair are shown, and how they are cut out of volumes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regnet.report.upright import stands_out

_COUNT = 9  # slices of a plane
_MARGIN = 0.05  # around what stands out, of the image's size
_INNER = 0.12  # of what stands out, at either end, that has no slice
# Name of a plane, the axes that go right and up in it, and the letters of its left, right, lower and upper edge.
_THREE = (("axial", (0, 1), "LRPA"), ("coronal", (0, 2), "LRIS"), ("sagittal", (1, 2), "PAIS"))
_TWO = (("slice", (0, 1), ""),)


@dataclass(frozen=True)
class Plane:
    """Parallel slices through upright volumes of one shape.

    Attributes:
        name: ``axial``, ``coronal``, ``sagittal``; of 2-D images ``slice``.
        across: the axes that go right and up.
        edges: letters of the left, right, lower and upper edge; none for 2-D.
        at: index of each slice along the third axis; ``(0,)`` in 2-D.
        box: the part of the plane that is shown.
        size: of the shown part, mm, to the right and up.
    """

    name: str
    across: tuple[int, int]
    edges: str
    at: tuple[int, ...]
    box: tuple[slice, slice]
    size: tuple[float, float]

    @property
    def shape(self) -> tuple[int, int]:
        """Voxels of a slice, to the right and up."""
        return self.box[0].stop - self.box[0].start, self.box[1].stop - self.box[1].start

    def cut(self, volume: Tensor) -> np.ndarray:
        """The slices of a volume as rows of pictures, ``(slices, height, width)``, from the top down."""
        slices = volume.permute(*self.across, *_rest(self.across, volume.ndim))[self.box]
        slices = slices[..., list(self.at)] if volume.ndim == 3 else slices[..., None]
        return slices.permute(2, 1, 0).flip(1).numpy()


def planes_of(images: Sequence[Tensor], spacing: Sequence[float]) -> list[Plane]:
    """The three planes of a pair, or the one of 2-D images: slices through what stands out in any of the images.

    Args:
        images: upright, ``(*spatial)``, of one shape.
        spacing: mm.
    """
    seen = torch.stack([stands_out(image) for image in images]).any(0)
    bounds = [_bounds(seen, axis) for axis in range(seen.ndim)]
    boxes = [_widened(bound, size) for bound, size in zip(bounds, seen.shape, strict=True)]
    planes = []
    for name, across, edges in _THREE if seen.ndim == 3 else _TWO:
        box = boxes[across[0]], boxes[across[1]]
        size = tuple((part.stop - part.start) * spacing[axis] for part, axis in zip(box, across, strict=True))
        rest = _rest(across, seen.ndim)
        at = _spread(*bounds[rest[0]]) if rest else (0,)
        planes.append(Plane(name, across, edges, at, box, (size[0], size[1])))
    return planes


def _rest(across: tuple[int, int], ndim: int) -> list[int]:
    return [axis for axis in range(ndim) if axis not in across]


def _bounds(seen: Tensor, axis: int) -> tuple[int, int]:
    """The first and last index along an axis with anything to see; all of it where there is nothing."""
    found = seen.movedim(axis, 0).flatten(1).any(1).nonzero().flatten()
    return (int(found[0]), int(found[-1])) if len(found) else (0, seen.shape[axis] - 1)


def _widened(bound: tuple[int, int], size: int) -> slice:
    margin = max(1, round(_MARGIN * size))
    return slice(max(0, bound[0] - margin), min(size, bound[1] + 1 + margin))


def _spread(first: int, last: int) -> tuple[int, ...]:
    """So many indices, evenly, without the ends; each once."""
    inset = _INNER * (last - first)
    places = np.linspace(first + inset, last - inset, _COUNT)
    return tuple(dict.fromkeys(round(place) for place in places))
