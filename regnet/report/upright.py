"""Images as they are looked at: axes along right, anterior and superior, and what of them stands out."""

from collections.abc import Sequence

from torch import Tensor

from regnet.spatial import Grid


def upright(
    images: Sequence[Tensor], field: Tensor, grid: Grid | None
) -> tuple[list[Tensor], Tensor, tuple[float, ...]]:
    """Turn images and a field so that their axes lie along R, A, S as nearly as flips and swaps make it.

    Args:
        images: each ``(*grid.shape)``.
        field: ``(D, *grid.shape)``, voxels.
        grid: where the voxels lie; None: the axes stay as they are.

    Returns:
        The images, the field with its components turned along, and the voxel size, mm (1 without a grid).
    """
    ndim = len(field)
    if grid is None:
        return list(images), field, (1.0,) * ndim
    order = [grid.world_axes.index(world) for world in range(ndim)]
    flips = [world for world in range(ndim) if grid.orientation[order[world]] not in "RAS"]
    field = field[order].permute(0, *[1 + axis for axis in order]).flip([1 + world for world in flips])
    field[flips] *= -1
    turned = [image.permute(order).flip(flips) for image in images]
    return turned, field, tuple(grid.spacing[axis] for axis in order)


def stands_out(image: Tensor) -> Tensor:
    """Where there is something to see: more than a tenth above the darkest value."""
    return image > image.min() + 0.1 * (image.max() - image.min())
