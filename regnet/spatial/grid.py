"""A voxel grid in world space (RAS millimetres)."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

_POSITIVE = ("R", "A", "S")
_NEGATIVE = ("L", "P", "I")


@dataclass(frozen=True, eq=False)
class Grid:
    """Where the voxels of an image lie: a shape and an affine.

    Args:
        shape: number of voxels along each of the ``D`` (2 or 3) array axes.
        affine: ``(D + 1, D + 1)``, voxel index -> RAS millimetres; voxel centres have whole indices. Kept as
            float64 on the CPU. A 2-D grid has the in-plane 3x3 matrix.

    Raises:
        ValueError: no or empty axes, an affine of another size, not finite, or singular.
    """

    shape: tuple[int, ...]
    affine: Tensor

    def __post_init__(self) -> None:
        shape = tuple(int(n) for n in self.shape)
        affine = torch.as_tensor(self.affine).detach().to("cpu", torch.float64).clone()
        size = len(shape) + 1
        if len(shape) not in (2, 3) or min(shape) < 1:
            raise ValueError(f"a grid needs 2 or 3 axes of at least one voxel, got shape {shape}")
        if tuple(affine.shape) != (size, size):
            raise ValueError(
                f"a {len(shape)}-D grid needs an affine of {size} x {size}, got {tuple(affine.shape)}: "
                "give the matrix from voxels to RAS millimetres"
            )
        if not bool(torch.isfinite(affine).all()):
            raise ValueError("the affine of a grid must be finite, got NaN or infinity")
        bottom = torch.zeros(size, dtype=torch.float64)
        bottom[-1] = 1
        if not torch.allclose(affine[-1], bottom, atol=1e-9):  # a product or an inverse may leave a trace there
            raise ValueError(f"the last row of an affine must be {bottom.tolist()}, got {affine[-1].tolist()}")
        affine[-1] = bottom
        linear = affine[:-1, :-1]
        lengths = linear.norm(dim=0)
        if float(lengths.min()) == 0 or abs(float(torch.linalg.det(linear / lengths))) < 1e-6:
            raise ValueError("the affine of a grid must be invertible, got axes of no length or in one plane")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "affine", affine)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grid):
            return NotImplemented
        return self.shape == other.shape and torch.equal(self.affine, other.affine)

    def __hash__(self) -> int:
        return hash((self.shape, tuple(self.affine.flatten().tolist())))

    def matches(self, other: "Grid", tolerance: float = 1e-3) -> bool:
        """Whether both grids put every voxel at the same place, to ``tolerance`` voxels (file headers are float32)."""
        if self.shape != other.shape:
            return False
        corners = torch.tensor(list(itertools.product(*((0.0, n - 1.0) for n in self.shape))), dtype=torch.float64)
        return bool((self.to_voxel(other.to_world(corners)) - corners).abs().max() <= tolerance)

    def overlaps(self, other: "Grid") -> bool:
        """Whether the two fields of view, edges included, may share a place.

        False is certain; of grids turned against each other, True may mean that only the boxes about them meet.
        """
        for one, two in ((self, other), (other, self)):
            seen = two.to_voxel(one.to_world(one.outer_corners()))
            if bool((seen.amax(0) < -0.5).any() or (seen.amin(0) > torch.tensor(two.shape) - 0.5).any()):
                return False
        return True

    def outer_corners(self) -> Tensor:
        """Voxel coordinates of the corners of the field of view, ``(2 ** D, D)``, float64."""
        return torch.tensor(list(itertools.product(*((-0.5, n - 0.5) for n in self.shape))), dtype=torch.float64)

    @property
    def ndim(self) -> int:
        """Number of spatial axes, 2 or 3."""
        return len(self.shape)

    @property
    def voxels(self) -> int:
        """Number of voxels."""
        return math.prod(self.shape)

    @property
    def spacing(self) -> tuple[float, ...]:
        """Distance between neighbouring voxels along each array axis, in mm."""
        return tuple(self.affine[:-1, :-1].norm(dim=0).tolist())

    @property
    def world_axes(self) -> tuple[int, ...]:
        """The world axis (0 = left-right, 1 = posterior-anterior, 2 = inferior-superior) nearest to each array axis."""
        directions = self._directions().abs()
        axes = range(self.ndim)
        return max(itertools.permutations(axes), key=lambda order: sum(float(directions[order[a], a]) for a in axes))

    @property
    def orientation(self) -> str:
        """Where each array axis points, e.g. ``"RAS"`` or ``"LAS"``; of an oblique grid the nearest such name."""
        directions = self._directions()
        return "".join(
            (_POSITIVE if float(directions[world, axis]) >= 0 else _NEGATIVE)[world]
            for axis, world in enumerate(self.world_axes)
        )

    def _directions(self) -> Tensor:
        # The rotation nearest to the affine, so that shear favours no axis.
        linear = self.affine[:-1, :-1]
        left, _, right = torch.linalg.svd(linear / linear.norm(dim=0))
        return left @ right

    def to_world(self, voxel: Tensor) -> Tensor:
        """Voxel coordinates ``(..., D)`` of this grid -> RAS mm ``(..., D)``, float64."""
        voxel = as_points(voxel, self.ndim)
        affine = self.affine.to(voxel.device)
        return voxel @ affine[:-1, :-1].T + affine[:-1, -1]

    def to_voxel(self, world: Tensor) -> Tensor:
        """RAS mm ``(..., D)`` -> voxel coordinates ``(..., D)`` of this grid, float64."""
        world = as_points(world, self.ndim)
        affine = self.affine.to(world.device)
        return (world - affine[:-1, -1]) @ torch.linalg.inv(affine[:-1, :-1]).T

    def window(self, start: Sequence[int], shape: Sequence[int]) -> "Grid":
        """The part of this grid, or its continuation, of ``shape`` voxels whose first voxel is ``start``."""
        affine = self.affine.clone()
        affine[:-1, -1] = self.to_world(torch.tensor([float(i) for i in start], dtype=torch.float64))
        return Grid(tuple(shape), affine)

    def slabs(self, voxels: int) -> Iterator["Grid"]:
        """This grid in parts along its last axis, of about so many voxels each."""
        across, last = self.shape[:-1], self.shape[-1]
        step = max(1, voxels // math.prod(across))
        for start in range(0, last, step):
            yield self.window((*(0 for _ in across), start), (*across, min(step, last - start)))

    def with_shape(self, shape: Sequence[int]) -> "Grid":
        """The same field of view (outer edges of the outer voxels) cut into ``shape`` voxels."""
        if len(shape) != self.ndim or min(shape) < 1:
            raise ValueError(f"shape must be {self.ndim} positive numbers of voxels, got {tuple(shape)}")
        ratio = torch.tensor([n / m for n, m in zip(self.shape, shape, strict=True)], dtype=torch.float64)
        affine = self.affine.clone()
        affine[:-1, :-1] *= ratio
        affine[:-1, -1] = self.to_world((ratio - 1) / 2)
        return Grid(tuple(shape), affine)

    def with_spacing(self, mm: float | Sequence[float]) -> "Grid":
        """The same field of view at a spacing of ``mm``, or the nearest one that divides it into whole voxels."""
        wanted = per_axis(mm, self.ndim, "spacing")
        return self.with_shape(
            [max(1, round(n * s / w)) for n, s, w in zip(self.shape, self.spacing, wanted, strict=True)]
        )

    def coarser(self, factor: float | Sequence[float]) -> "Grid":
        """The same field of view in voxels ``factor`` times as long: the grid of ``ops.resize(factor=1 / factor)``."""
        factors = per_axis(factor, self.ndim, "factor")
        return self.with_shape([max(1, round(n / f)) for n, f in zip(self.shape, factors, strict=True)])


def per_axis(value: float | Sequence[float], ndim: int, name: str) -> tuple[float, ...]:
    """One positive number, or one per axis, as one per axis.

    Raises:
        ValueError: another count of numbers, or one that is not positive and finite.
    """
    values = (float(value),) * ndim if isinstance(value, int | float) else tuple(float(v) for v in value)
    if len(values) != ndim or not all(math.isfinite(v) and v > 0 for v in values):
        raise ValueError(f"{name} must be one positive number or {ndim} of them, got {value}")
    return values


def as_points(points: Any, ndim: int) -> Tensor:
    """Points as a caller has them, a tensor, an array or lists, as a tensor ``(..., ndim)``, float64.

    Raises:
        ValueError: they are no numbers, or not ``ndim`` of them a point.
    """
    if not isinstance(points, Tensor):
        try:
            points = torch.from_numpy(np.ascontiguousarray(points, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise ValueError(f"points are a tensor or array of numbers (..., {ndim}) ({error})") from error
    if points.shape[-1:] != (ndim,):
        raise ValueError(f"points of {ndim} coordinates are needed, (..., {ndim}), got the shape {tuple(points.shape)}")
    return points.to(torch.float64)


def canonical(grid: Grid, spacing: float | Sequence[float] | None = None) -> Grid:
    """The RAS grid along the world axes that covers the whole field of view of ``grid``.

    Args:
        grid: any grid, oblique ones too.
        spacing: in mm, one number or one per world axis; exact. None keeps the spacing that ``grid`` has along the
            nearest of its own axes, so that a grid that already lies along the world axes is only flipped and permuted.

    Returns:
        A grid of orientation ``RAS`` (2-D: ``RA``) that is centred on ``grid``'s field of view, edges included.
    """
    if spacing is None:
        native: list[float] = [0.0] * grid.ndim
        for axis, world in enumerate(grid.world_axes):
            native[world] = grid.spacing[axis]
        spacing = native
    steps = torch.tensor(per_axis(spacing, grid.ndim, "spacing"), dtype=torch.float64)
    return _covering(grid, torch.diag(steps))


def orthogonal(grid: Grid, tolerance: float = 1e-4) -> Grid:
    """A grid for files that hold no shear: ``grid`` itself where its axes stand upright on each other.

    Args:
        grid: any grid; mirrored ones stay mirrored.
        tolerance: the cosine between two axes that passes as upright.

    Returns:
        ``grid``, or that of the same spacings along the nearest upright axes that covers its whole field of view.
    """
    linear = grid.affine[:-1, :-1] / grid.affine[:-1, :-1].norm(dim=0)
    if bool((linear.T @ linear - torch.eye(grid.ndim)).abs().max() <= tolerance):
        return grid
    return _covering(grid, grid._directions() * torch.tensor(grid.spacing, dtype=torch.float64))


def _covering(grid: Grid, steps: Tensor) -> Grid:
    """The grid whose voxels are ``steps`` apart, ``(D, D)``, one column an axis, centred on the field of view."""
    edges = grid.to_world(grid.outer_corners()) @ torch.linalg.inv(steps).T
    low, high = edges.min(dim=0).values, edges.max(dim=0).values
    # An extent of 100.00001 voxels is 100 voxels and the float32 of a file header.
    shape = torch.ceil(high - low - 1e-3).clamp(min=1)
    affine = torch.eye(grid.ndim + 1, dtype=torch.float64)
    affine[:-1, :-1] = steps
    affine[:-1, -1] = steps @ ((low + high) / 2 - (shape - 1) / 2)
    return Grid(tuple(int(n) for n in shape), affine)


def matrix(source: Grid, target: Grid) -> Tensor:
    """The matrix from voxels of ``source`` to voxels of ``target`` at the same place in the world.

    Returns:
        ``(1, D, D + 1)``, float64, on the CPU. ``ops.warp`` wants ``matrix(fixed, moving)``.

    Raises:
        ValueError: one grid is 2-D and the other 3-D.
    """
    if source.ndim != target.ndim:
        raise ValueError(
            f"a {source.ndim}-D and a {target.ndim}-D image have no common space: give two of the same kind"
        )
    return torch.linalg.solve(target.affine, source.affine)[None, :-1]
