"""Label maps of any kind as the small numbers that pairs are made of."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from regnet.data.prepare import majority
from regnet.data.slices import axial_slice
from regnet.data.spec import InputSpec
from regnet.errors import InputError
from regnet.io.image import Image, read_labels
from regnet.spatial.grid import Grid

_MOST = 128  # labels in all the maps: with what is put around them they fit into 8 bits


def read_label_maps(
    paths: Sequence[str | Path], spec: InputSpec, shape: Sequence[int], heights: Sequence[float]
) -> list[Tensor]:
    """Label maps on grids of one shape, each centred on what is labelled; equal labels become equal numbers.

    Args:
        paths: of integer images, 0 outside.
        spec: gives dimension and spacing.
        shape: of the result.
        heights: of the axial slices of a volume that 2-D pairs are made of, mm above its middle.

    Returns:
        ``(1, 1, *shape)`` uint8 each: 0, and 1 to the number of labels in all the maps.

    Raises:
        InputError: a map is empty, of another dimension, or there are too many labels.
    """
    images: list[Image] = []
    for image in map(read_labels, paths):
        flat = spec.ndim == 2 and image.grid.ndim == 3
        images += [axial_slice(image, height) for height in heights] if flat else [image]
    for image in images:
        if image.grid.ndim != spec.ndim or not bool((image.data != 0).any()):
            raise InputError(f"{image.name}: a {spec.ndim}-D label map that is not empty is needed")
    maps = [_centred(image, spec, shape) for image in images]
    known = torch.cat([labels.unique() for labels in maps]).unique() if maps else torch.zeros(0)
    known = known[known != 0].contiguous()
    if len(known) > _MOST:
        raise InputError(f"data.labels: {len(known)} labels, but pairs are made of at most {_MOST}")
    return [((torch.searchsorted(known, labels) + 1) * (labels != 0)).to(torch.uint8) for labels in maps]


def _centred(image: Image, spec: InputSpec, shape: Sequence[int]) -> Tensor:
    """The labels of an image around the middle of what is labelled."""
    assert spec.spacing is not None
    where = image.data[0].nonzero().double()
    middle = image.grid.to_world((where.amin(0) + where.amax(0)) / 2)
    affine = torch.eye(spec.ndim + 1, dtype=torch.float64)
    affine[:-1, :-1] *= spec.spacing
    affine[:-1, -1] = middle - spec.spacing * (torch.tensor(shape, dtype=torch.float64) - 1) / 2
    grid = Grid(tuple(shape), affine)
    return majority(image, grid, grid).long()
