"""Landmarks as a table names them."""

from dataclasses import replace
from pathlib import Path

from torch import Tensor

from regnet.io.points import read_points
from regnet.spatial.grid import Grid

SPACES = ("ras", "lps", "voxel", "voxel1")


def read_landmarks(path: Path, grid: Grid, space: str | None = None) -> Tensor:
    """Read landmarks.

    Args:
        path: as :func:`regnet.io.read_points` takes it.
        grid: of their image.
        space: ``ras``, ``lps`` (mm), ``voxel`` (of the image, from 0) or ``voxel1`` (from 1, as DIR-Lab counts); None:
            as the file says.

    Returns:
        ``(K, D)``, RAS mm, float64.

    Raises:
        InputError: the file cannot be read, or nobody says its space.
    """
    points = read_points(path, "voxel" if space == "voxel1" else space)
    if space == "voxel1":
        points = replace(points, coordinates=points.coordinates - 1)
    return points.world(grid.ndim, grid)
