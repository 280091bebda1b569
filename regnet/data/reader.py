"""What a row of a table names, read and brought onto the grid of a pair."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regnet.data.cache import Cache
from regnet.data.landmarks import read_landmarks
from regnet.data.prepare import (
    Prepared,
    check_mask,
    check_same_grid,
    place,
    prepare,
    prepare_labels,
    prepare_mask,
    prepare_source,
)
from regnet.data.recent import Recent
from regnet.data.spec import InputSpec
from regnet.errors import InputError
from regnet.io.image import Image, read_image, read_labels
from regnet.io.image_file import open_image
from regnet.io.transform import read_transform
from regnet.spatial.affine import Affine
from regnet.spatial.grid import Grid

Paths = tuple[Path, ...]


class Reader:
    """Reads and prepares; what was prepared lately is kept in memory, and all of it in a cache where there is one.

    Where a ``start`` is given, the affine map that comes first, it changes where the image lies and no voxel of it.

    Args:
        spec: the input contract.
        cache: where prepared images are kept.
        space: of landmarks; see :func:`regnet.data.landmarks.read_landmarks`.
    """

    def __init__(self, spec: InputSpec, cache: Cache | None = None, space: str | None = None) -> None:
        self.spec = spec
        self.cache = cache
        self.space = space
        self._recent = Recent()
        self._last: tuple[Paths, Image] | None = None
        self._grids: dict[Path, Grid] = {}

    def image(self, paths: Paths, grid: Grid | None = None, start: Affine | None = None) -> Prepared:
        """An image as the network sees it, on ``grid`` or on its own (see :func:`regnet.data.prepare`)."""
        return self._prepared("image", paths, grid, start, lambda image: prepare(image, self.spec, grid))

    def source(self, paths: Paths, grid: Grid, start: Affine | None = None) -> Prepared:
        """A moving image on its own voxels (see :func:`regnet.data.prepare.prepare_source`)."""
        spacing = min(grid.spacing)
        return self._prepared("source", paths, spacing, start, lambda image: prepare_source(image, self.spec, grid))

    def labels(self, path: Path, image: Paths, grid: Grid, start: Affine | None = None) -> Tensor:
        """Labels on a grid, ``(1, 1, *spatial)``; they must lie on the voxels of their image."""

        def make() -> dict[str, Tensor]:
            return {"labels": prepare_labels(self._beside(read_labels(path), image, start), grid)}

        return self._get("labels", (path, *image), grid, start, make)["labels"]

    def mask(self, path: Path, image: Paths, grid: Grid, start: Affine | None = None) -> Tensor:
        """A mask on a grid, ``(1, 1, *spatial)``, 0 or 1; it must lie on the voxels of its image."""

        def make() -> dict[str, Tensor]:
            mask = self._beside(read_image(path), image, start)
            check_mask(mask)
            return {"mask": prepare_mask(mask, grid).to(torch.uint8)}

        return self._get("mask", (path, *image), grid, start, make)["mask"].float()

    def points(self, path: Path, image: Paths, grid: Grid, start: Affine | None = None) -> Tensor:
        """Landmarks in voxels of a grid, ``(K, D)`` float32."""
        world = read_landmarks(path, self.grid(image), self.space)
        if start is not None:
            world = torch.linalg.solve(start.matrix[:-1, :-1], (world - start.matrix[:-1, -1]).T).T
        return grid.to_voxel(world).float()

    def grid(self, image: Paths) -> Grid:
        """Where the voxels of an image lie; of a file that was not read, its header is."""
        if image[0] not in self._grids:
            self._grids[image[0]] = open_image(image[0]).grid
        return self._grids[image[0]]

    def _prepared(
        self,
        kind: str,
        paths: Paths,
        on: Grid | float | None,
        start: Affine | None,
        make: Callable[[Image], Prepared],
    ) -> Prepared:
        def made() -> dict[str, Tensor]:
            read = self._read(paths)
            found = make(read if start is None else place(read, start))
            return {"data": found.data, "view": found.view.to(torch.uint8), "affine": found.grid.affine}

        found = self._get(kind, paths, on, start, made)
        grid = Grid(tuple(found["data"].shape[2:]), found["affine"])
        return Prepared(found["data"], found["view"].float(), grid)

    def _get(
        self,
        kind: str,
        files: Paths,
        on: Grid | float | None,
        start: Affine | None,
        make: Callable[[], Mapping[str, Tensor]],
    ) -> Mapping[str, Tensor]:
        matrix = None if start is None else tuple(start.matrix.flatten().tolist())

        def kept() -> Mapping[str, Tensor]:
            if self.cache is None:
                return make()
            where = [on.shape, on.affine.tolist()] if isinstance(on, Grid) else on
            return self.cache.get(kind, files, {"spec": self.spec.to_dict(), "on": where, "start": matrix}, make)

        return self._recent.get((kind, files, on, matrix), kept)

    def _read(self, paths: Paths) -> Image:
        """The image of these files; the last one read is kept, since a moving image is wanted twice."""
        if self._last is None or self._last[0] != paths:
            self._last = paths, read_channels(paths)
            self._grids[paths[0]] = self._last[1].grid
        return self._last[1]

    def _beside(self, part: Image, image: Paths, start: Affine | None) -> Image:
        check_same_grid(part, self.grid(image), str(image[0]))
        return part if start is None else place(part, start)


def read_start(path: Path | None, moving: Grid, fixed: Grid) -> Affine | None:
    """The affine map fixed -> moving that comes first.

    Raises:
        InputError: it cannot be read or deforms.
    """
    if path is None:
        return None
    transform: Any = read_transform(path, None, moving, fixed)
    if not isinstance(transform, Affine):
        raise InputError(f"{path}: deforms; an initial_transform of training must be an affine map")
    return transform


def read_channels(paths: Sequence[Path]) -> Image:
    """Read one file per channel into one image.

    Raises:
        InputError: a file cannot be read, or lies on another grid than the first.
    """
    images = [read_image(path) for path in paths]
    first = images[0]
    for other in images[1:]:
        check_same_grid(other, first.grid, first.name)
    if len(images) == 1:
        return first
    return Image(torch.cat([image.data for image in images]), first.grid, first.path, first.header)
