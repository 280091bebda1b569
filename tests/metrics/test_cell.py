"""Areas of surface in a cell, known in closed form."""

import math

import numpy as np
import pytest

from regnet.metrics._cell import CORNERS, areas

UNIT = (1.0, 1.0, 1.0)


def code(*corners: tuple[int, int, int]) -> int:
    return sum(1 << CORNERS.index(corner) for corner in corners)


@pytest.mark.parametrize(
    ("corners", "area"),
    [
        ([], 0),
        ([(0, 0, 0)], 3**0.5 / 8),  # a triangle of sides √½
        ([(0, 0, 0), (0, 0, 1)], 2**0.5 / 2),  # a rectangle of 1 x √½
        ([(0, 0, 0), (0, 1, 1)], 2 * 3**0.5 / 8),  # two corners that no edge joins
        ([(0, 0, 0), (0, 0, 1), (0, 1, 0)], 1 / 2 + 3 * 3**0.5 / 8),  # half a face and a trapezium of √2, √½, √½, √½
        ([(0, 0, 0), (0, 0, 1), (1, 1, 0)], 2**0.5 / 2 + 3**0.5 / 8),
        ([(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1)], 1),  # half the cell
        ([(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)], 3 * 3**0.5 / 4),  # a hexagon of sides √½
        ([(0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 1, 1)], 2**0.5 / 2 + 3**0.5 / 2),  # folded along the longest lines
        ([(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0)], 4 * 3**0.5 / 8),
    ],
)
def test_the_area_of_a_cut_is_that_of_its_polygons(corners: list[tuple[int, int, int]], area: float) -> None:
    assert areas(UNIT)[code(*corners)] == pytest.approx(area)
    outside = [corner for corner in CORNERS if corner not in corners]
    assert areas(UNIT)[code(*outside)] == pytest.approx(area)


def test_the_area_does_not_depend_on_how_the_cell_lies() -> None:
    table = areas(UNIT)
    for number in range(256):
        inside = [corner for bit, corner in enumerate(CORNERS) if number >> bit & 1]
        turned = [(y, 1 - x, z) for x, y, z in inside]
        flipped = [(z, 1 - y, x) for x, y, z in inside]
        assert table[code(*turned)] == pytest.approx(table[number])
        assert table[code(*flipped)] == pytest.approx(table[number])


def test_areas_are_measured_in_the_spacing() -> None:
    a, b, c = 1.0, 2.0, 3.5
    table = areas((a, b, c))
    assert table[code((0, 0, 0))] == pytest.approx(math.hypot(a * b, b * c, c * a) / 8)
    assert table[code((0, 0, 0), (0, 0, 1))] == pytest.approx(c * math.hypot(a, b) / 2)
    assert table[code((0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1))] == pytest.approx(b * c)
    assert np.allclose(areas((2.0, 2.0, 2.0)), 4 * areas(UNIT))
