"""Several maps of the world, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from regnet.spatial.affine import Affine
from regnet.spatial.displacement import Displacement
from regnet.spatial.grid import Grid
from regnet.spatial.transform import Transform, check_axes


@dataclass(frozen=True, eq=False)
class Composite(Transform):
    """Maps one after the other, each as exact as it is alone: nothing is sampled before :meth:`on` or :meth:`apply`.

    Args:
        parts: in the order of ANTs: a point of the fixed image goes through the first, then the second, and so on.
            :func:`chain` and ``@`` make the shortest such list.

    Raises:
        ValueError: no part, or parts that differ in dimension.
    """

    parts: tuple[Transform, ...]

    def __post_init__(self) -> None:
        parts = tuple(self.parts)
        if not parts:
            raise ValueError("a chain of transforms needs at least one")
        if len({part.ndim for part in parts}) > 1:
            raise ValueError(
                f"transforms of {' and '.join(sorted({f'{part.ndim}-D' for part in parts}))} do not go together"
            )
        object.__setattr__(self, "parts", parts)

    @property
    def ndim(self) -> int:
        """Number of axes of the world, 2 or 3."""
        return self.parts[0].ndim

    @property
    def home(self) -> Grid | None:
        """The grid of the first part, the one that lies in the fixed space; None if that has none."""
        return self.parts[0].home

    def _map_points(self, world: Tensor) -> Tensor:
        for part in self.parts:
            world = part.map_points(world)
        return world

    def inverse(self) -> Transform:
        """The map from the moving to the fixed image: the inverses, in the other order."""
        return Composite(tuple(part.inverse() for part in reversed(self.parts)))

    def follow(self, flow: Tensor, grid: Grid) -> Tensor:
        """See :meth:`Transform.follow`."""
        for part in self.parts:
            flow = part.follow(flow, grid)
        return flow


def chain(transforms: Sequence[Transform]) -> Transform:
    """One map for several: chains within chains are opened, neighbouring affine maps multiplied.

    Args:
        transforms: in the order of ANTs, as :class:`Composite` takes them.

    Returns:
        The only one left, else a :class:`Composite`.

    Raises:
        ValueError: none at all, or transforms that differ in dimension.
    """
    parts: list[Transform] = []
    for transform in transforms:
        for part in transform.parts if isinstance(transform, Composite) else (transform,):
            before = parts[-1] if parts else None
            if isinstance(part, Affine) and isinstance(before, Affine) and part.ndim == before.ndim:
                parts[-1] = Affine(part.matrix @ before.matrix)
            else:
                parts.append(part)
    return parts[0] if len(parts) == 1 else Composite(tuple(parts))


def compose(transforms: Sequence[Transform], grid: Grid) -> Displacement:
    """One map for several, sampled at the voxels of a grid.

    Args:
        transforms: in the order of ANTs: a point of the fixed space goes through the first, then the second, and so
            on, so the last touches the moving image first. None at all gives the identity.
        grid: of the result, usually that of the fixed image.

    Raises:
        ValueError: a transform has another number of axes than the grid.
    """
    for transform in transforms:
        check_axes(transform, grid)
    return chain(transforms).on(grid) if transforms else Displacement.identity(grid)
