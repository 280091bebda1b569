"""How much surface a cell holds: the cube between eight voxel centres, some of them inside a structure."""

import functools
from collections.abc import Iterator, Sequence

import numpy as np

Corner = tuple[int, int, int]

CORNERS: tuple[Corner, ...] = tuple((i, j, k) for i in (0, 1) for j in (0, 1) for k in (0, 1))


@functools.lru_cache(maxsize=64)
def areas(spacing: tuple[float, float, float]) -> np.ndarray:
    """The area of surface in a cell, by which corners are inside.

    The surface cuts each edge between an inner and an outer corner in its middle (marching cubes). Corners of the
    rarer kind that no edge joins are cut off one by one. A cut of five or six points that lie in no plane is folded
    the way that gives it the largest area: so the areas of a unit cell are those of the `surface-distance` package,
    which Learn2Reg uses.

    Args:
        spacing: lengths of the cell's edges.

    Returns:
        ``(256,)``: bit ``n`` of the index says whether corner ``CORNERS[n]`` is inside.

    Source:
        Lorensen and Cline, SIGGRAPH 1987; Nikolov et al., arXiv 1809.04430.
    """
    return np.array([_area(code, spacing) for code in range(256)])


def _area(code: int, spacing: Sequence[float]) -> float:
    inside = {corner for bit, corner in enumerate(CORNERS) if code >> bit & 1}
    rarer = inside if len(inside) <= 4 else set(CORNERS) - inside
    return sum(_norm(_fold(_cut(part)), spacing) for part in _parts(rarer))


def _parts(corners: set[Corner]) -> Iterator[set[Corner]]:
    """The corners in groups that edges join."""
    left = set(corners)
    while left:
        part, new = set(), {min(left)}
        while new:
            part |= new
            new = {corner for corner in left - part if any(_joined(corner, other) for other in part)}
        left -= part
        yield part


def _joined(one: Corner, other: Corner) -> bool:
    return sum(abs(a - b) for a, b in zip(one, other, strict=True)) == 1


def _cut(part: set[Corner]) -> np.ndarray:
    """The closed line round a group, ``(n, 3)``: from face to face through the middles of the edges that it cuts."""
    middles = [
        tuple((a + b) / 2 for a, b in zip(one, other, strict=True))
        for one in part
        for other in CORNERS
        if _joined(one, other) and other not in part
    ]
    line = [middles.pop()]
    while middles:
        # Two middles lie on one face of the cell where a coordinate of 0 or 1 is the same.
        following = next(m for m in middles if any(a == b != 0.5 for a, b in zip(m, line[-1], strict=True)))
        middles.remove(following)
        line.append(following)
    return np.array(line)


def _fold(line: np.ndarray) -> np.ndarray:
    """The triangles ``(n, 3, 3)`` between the points of a closed line whose area is the largest, that is unique."""
    return max((line[list(found)] for found in _triangulations(0, len(line) - 1)), key=lambda t: round(_norm(t), 9))


def _triangulations(first: int, last: int) -> Iterator[tuple[tuple[int, int, int], ...]]:
    if last - first < 2:
        yield ()
        return
    for middle in range(first + 1, last):
        for one in _triangulations(first, middle):
            for other in _triangulations(middle, last):
                yield (*one, *other, (first, middle, last))


def _norm(triangles: np.ndarray, spacing: Sequence[float] = (1.0, 1.0, 1.0)) -> float:
    """Area of triangles ``(..., 3, 3)``."""
    scaled = triangles * np.asarray(spacing)
    sides = scaled[..., 1, :] - scaled[..., 0, :], scaled[..., 2, :] - scaled[..., 0, :]
    return float(np.linalg.norm(np.cross(*sides), axis=-1).sum() / 2)
