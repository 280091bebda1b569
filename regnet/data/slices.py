"""Slices of volumes, as 2-D images."""

import torch

from regnet.errors import InputError
from regnet.io.image import Image
from regnet.spatial.grid import Grid


def axial_slice(volume: Image, height: float | None = None) -> Image:
    """The slice of a volume nearest to a height, across the array axis nearest to the world's vertical.

    Args:
        volume: a 3-D image or label map.
        height: mm along that axis above the middle of the field of view; ``None``: the middle.

    Returns:
        A 2-D image ``(C, X, Y)`` on the in-plane grid, in world x and y.

    Raises:
        InputError: the image is not 3-D, or does not reach this height.
    """
    grid = volume.grid
    if grid.ndim != 3:
        raise InputError(f"{volume.name}: is {grid.ndim}-D, but a volume is needed to take a slice from")
    axis = grid.world_axes.index(2)
    middle = (grid.shape[axis] - 1) / 2
    upwards = 1 if float(grid.affine[2, axis]) > 0 else -1
    index = round(middle + upwards * (height or 0.0) / grid.spacing[axis])
    if not 0 <= index < grid.shape[axis]:
        raise InputError(f"{volume.name}: has no slice {height:g} mm from its middle")
    plane = [other for other in range(3) if other != axis]
    affine = torch.eye(3, dtype=torch.float64)
    affine[:2, :2] = grid.affine[:2, plane]
    affine[:2, 2] = grid.affine[:2, axis] * index + grid.affine[:2, 3]
    shape = tuple(grid.shape[other] for other in plane)
    return Image(volume.data.select(axis + 1, index).contiguous(), Grid(shape, affine), volume.path)
