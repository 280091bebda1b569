"""What every map of the world can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regnet.spatial.grid import Grid, as_points
from regnet.spatial.resample import check_tensor, warp_image, warp_labels

if TYPE_CHECKING:
    from regnet.spatial.displacement import Displacement


class Transform(ABC):
    """A map of the world (RAS mm), from the fixed to the moving image. Immutable.

    It takes *points* from fixed to moving and so brings *images* from moving to fixed: the result at ``x`` is the
    moving image at ``map_points(x)``. ``(a @ b).map_points(x) == a.map_points(b.map_points(x))``.
    """

    @property
    @abstractmethod
    def ndim(self) -> int:
        """Number of axes of the world, 2 or 3."""

    @property
    def home(self) -> Grid | None:
        """The grid that results have where no other is asked for: that of its field, None without a field."""
        return None

    def map_points(self, world: Any) -> Tensor:
        """Points of the fixed image -> the matching points of the moving image.

        Args:
            world: ``(..., D)``, RAS mm: a tensor, an array or lists.

        Returns:
            ``(..., D)``, RAS mm, float64.

        Raises:
            ValueError: no numbers, or not ``D`` of them a point.
        """
        return self._map_points(as_points(world, self.ndim))

    @abstractmethod
    def _map_points(self, world: Tensor) -> Tensor:
        """:meth:`map_points` of a tensor ``(..., D)``, float64."""

    @abstractmethod
    def inverse(self) -> Transform:
        """The map from the moving to the fixed image."""

    @abstractmethod
    def follow(self, flow: Tensor, grid: Grid) -> Tensor:
        """Where points go that have moved already: the displacement of "first ``flow``, then this map".

        Args:
            flow: ``(D, *grid.shape)``, voxels of ``grid``, float32 or float64.
            grid: of the points' start.

        Returns:
            ``(D, *grid.shape)``, voxels of ``grid``: as :meth:`map_points` from ``p + flow(p)``, less ``p``. Nothing
            but a few such fields is held.
        """

    def on(self, grid: Grid) -> Displacement:
        """The same world map, sampled at the voxels of a grid and in its voxels."""
        from regnet.spatial.displacement import Displacement

        check_axes(self, grid)
        return Displacement(self.follow(self._still(grid), grid), grid)

    def apply(
        self,
        image: Tensor,
        source: Grid,
        reference: Grid | None = None,
        order: int = 1,
        background: float = 0.0,
        prefilter: bool = True,
    ) -> Tensor:
        """Bring a moving image to the fixed space, interpolating it once.

        Args:
            image: ``(N, C, *source.shape)``, the moving image on its own grid.
            source: the grid of the moving image.
            reference: the grid of the result; None: that of this transform's field.
            order: of the spline, 0 to 7.
            background: the value where the moving image was not in view.
            prefilter: whether ``image`` holds samples (True) or what :func:`regnet.spatial.coefficients_` made of them.

        Returns:
            ``(N, C, *reference.shape)``.

        Raises:
            ValueError: no tensor; no reference, and no field that has a grid; shapes or axes that do not fit.
        """
        check_tensor(image)
        there = self._there(self._reference(reference))
        flow = there.flow[None].to(image.device)
        return warp_image(image, flow, source, there.grid, order, background, prefilter)

    def apply_labels(
        self, labels: Tensor, source: Grid, reference: Grid | None = None, mode: str = "nearest", background: int = 0
    ) -> Tensor:
        """As :meth:`apply`, for a label map ``(N, 1, *source.shape)`` of an integer type.

        Args:
            labels, source, reference: as there.
            mode: ``"nearest"``, or ``"linear"``: the label that weighs most among the neighbours.
            background: the label where the moving image was not in view.

        Returns:
            ``(N, 1, *reference.shape)``, type of ``labels``.
        """
        check_tensor(labels)
        there = self._there(self._reference(reference))
        return warp_labels(labels, there.flow[None].to(labels.device), source, there.grid, mode, background)

    def save(self, path: str | Path, overwrite: bool = False, **options: Any) -> None:
        """Write to a file: :func:`regnet.io.write_transform`, which as the commands keeps a file that exists.

        Raises:
            InputError: the file exists and ``overwrite`` is not set, or as there.
        """
        from regnet.io import write_transform  # named in tests/test_architecture.py: files are above spaces

        write_transform(path, self, overwrite=overwrite, **options)

    @staticmethod
    def load(path: str | Path, **options: Any) -> Transform:
        """Read from a file: :func:`regnet.io.read_transform`."""
        from regnet.io import read_transform

        return read_transform(path, **options)

    def __matmul__(self, first: Transform) -> Transform:
        """First ``first``, then this map."""
        from regnet.spatial.composite import chain

        return chain([first, self])

    def _there(self, reference: Grid) -> Displacement:
        """This map at the voxels of ``reference``; its own grid may lie elsewhere, if that does part of the work."""
        return self.on(reference)

    def _still(self, grid: Grid) -> Tensor:
        """No displacement, for :meth:`follow`."""
        return torch.zeros((grid.ndim, *grid.shape))

    def _reference(self, reference: Grid | None) -> Grid:
        grid = reference or self.home
        if grid is None:
            raise ValueError("this transform has no field, so no grid of its own: give a reference grid")
        check_axes(self, grid)
        return grid


def check_axes(transform: Transform, grid: Grid) -> None:
    """Refuse a grid of another number of axes.

    Raises:
        ValueError: it has.
    """
    if transform.ndim != grid.ndim:
        raise ValueError(
            f"a {transform.ndim}-D transform does not act on a {grid.ndim}-D grid: they have no common space"
        )
