"""Points (landmarks) as other tools keep them: read with all that stands beside them, written as they came.

A file may be a CSV table with columns ``x, y, z`` (ITK, ANTs), plain numbers, a list of 3-D Slicer (``.fcsv``,
``.mrk.json``), or FreeSurfer's control points (``.dat``), labels (``.label``) or point sets (``.json``).
"""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from regnet.errors import InputError
from regnet.io import point_json, point_table
from regnet.io.atomic import atomic_path
from regnet.spatial.grid import Grid

SPACES = ("ras", "lps", "voxel")


class Layout(Protocol):
    """A file of points, taken apart."""

    @property
    def space(self) -> str | None:
        """What the file says, or None."""

    @property
    def usual(self) -> str | None:
        """What such files mean where nobody says anything."""

    @property
    def coordinates(self) -> list[list[float]]:
        """The points, 2 or 3 numbers each."""

    def render(self, coordinates: list[list[float]]) -> str:
        """The text of the file with other points in their place."""


@dataclass(frozen=True, eq=False)
class Points:
    """Points and the space they are in.

    Args:
        coordinates: ``(N, D)``, float64: mm, or voxels of some image; D is 2 or 3.
        space: ``"ras"``, ``"lps"`` (mm) or ``"voxel"`` (the image is known to who asks).
        path: the file they came from, for messages.
        layout: what else is in that file.
    """

    coordinates: Tensor
    space: str
    path: Path | None = None
    layout: Layout | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """What to call these points in a message."""
        return str(self.path) if self.path is not None else "points in memory"

    def world(self, ndim: int, grid: Grid | None = None) -> Tensor:
        """The points in world space.

        Args:
            ndim: axes of the world, 2 or 3; a third coordinate is left out in 2-D.
            grid: of the image whose voxels they count, where the space is ``"voxel"``.

        Returns:
            ``(N, ndim)``, RAS mm, float64.

        Raises:
            InputError: too few coordinates, or voxels and no grid.
        """
        if self.coordinates.shape[1] < ndim:
            raise InputError(f"{self.name}: has {self.coordinates.shape[1]} coordinates a point; {ndim} are needed")
        there = self.coordinates[:, :ndim]
        if self.space == "voxel":
            return self._grid(grid).to_world(there)
        return _flipped(there) if self.space == "lps" else there

    def moved(self, world: Tensor, grid: Grid | None = None) -> "Points":
        """The same table with the points at ``world``, ``(N, ndim)`` in RAS mm, in the space that they have here.

        Args:
            world: where they are.
            grid: of the image whose voxels they shall count, where the space is ``"voxel"``.
        """
        there = _flipped(world) if self.space == "lps" else world
        if self.space == "voxel":
            there = self._grid(grid).to_voxel(world)
        return replace(self, coordinates=torch.cat([there, self.coordinates[:, there.shape[1] :]], dim=1))

    def _grid(self, grid: Grid | None) -> Grid:
        if grid is None:
            raise InputError(f"{self.name}: points in voxels need the image whose voxels they are")
        return grid


def read_points(path: str | Path, space: str | None = None) -> Points:
    """Read points.

    Args:
        path: ``.csv``, ``.tsv``, ``.txt``, ``.fcsv``, ``.mrk.json``, ``.json``, ``.dat`` or ``.label``.
        space: ``"ras"``, ``"lps"`` or ``"voxel"``; None: as the file says. A table ``x,y,z,t,...`` is taken as ANTs
            writes it, in LPS, unless told otherwise.

    Raises:
        InputError: the file is missing or cannot be read as points; nobody says the space, or both say different ones.
    """
    path = Path(path)
    if space is not None and space not in SPACES:
        raise InputError(f"the space of points is one of {', '.join(SPACES)}, got {space!r}")
    if not path.is_file():
        raise InputError(f"{path}: is not a file" if path.exists() else f"{path}: no such file")
    try:
        text = path.read_text(encoding="utf-8-sig")
        parse = point_json.parse if path.suffix.lower() == ".json" else point_table.parse
        layout: Layout = parse(text, path)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not a file of points (no text of the kind its name says)") from error
    if layout.space is not None and space not in (None, layout.space):
        raise InputError(f"{path}: the file says its points are in {layout.space}, --space says {space}")
    known = layout.space or space or layout.usual
    if known is None:
        raise InputError(f"{path}: does not say in which space its points are; give --space {'|'.join(SPACES)}")
    coordinates = torch.tensor(layout.coordinates, dtype=torch.float64)
    if not len(coordinates):
        coordinates = coordinates.reshape(0, 3)
    bad = (~torch.isfinite(coordinates).all(dim=1)).nonzero().flatten().tolist()
    if bad:
        raise InputError(f"{path}: point {bad[0] + 1} has a coordinate that is NaN or infinite")
    return Points(coordinates, known, path, layout)


def write_points(path: str | Path, points: Points, overwrite: bool = True) -> None:
    """Write points as the file they came from, all else in it kept; those made in memory as a table ``x,y,z``.

    Args:
        path: of the kind the points came from, else ``.csv``; folders are made.
        points: what to write.
        overwrite: whether an existing file may be replaced.

    Raises:
        InputError: another kind of file, or an existing one without ``overwrite``.
    """
    path = Path(path)
    kind = ".csv" if points.path is None else points.path.suffix.lower()
    if path.suffix.lower() != kind:
        raise InputError(f"{path}: these points are written as {kind}, as they came; choose such a name")
    layout = points.layout or point_table.plain(points.coordinates.shape[1])
    with atomic_path(path, overwrite) as temporary:
        temporary.write_text(layout.render(points.coordinates.tolist()), encoding="utf-8")


def _flipped(points: Tensor) -> Tensor:
    """RAS <-> LPS."""
    return points * torch.tensor([-1.0, -1.0, 1.0], dtype=torch.float64)[: points.shape[1]]
