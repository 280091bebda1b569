"""Pictures of slices below each other."""

import base64
import io
import re

import numpy as np
import PIL.Image
import torch

from regnet.report.lattice import lattice
from regnet.report.planes import Plane
from regnet.report.scale import determinants, lengths
from regnet.report.strips import coloured, grey, outlines, window_of


def pixels(uri: str) -> np.ndarray:
    kind, _, data = uri.partition(";base64,")
    assert kind in ("data:image/png", "data:image/jpeg")
    return np.asarray(PIL.Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")).astype(int)


def points(path: str) -> list[list[tuple[float, float]]]:
    """The corners of a path's lines, in voxels."""
    found = []
    for part in path.split("M")[1:]:
        start, _, moves = part.partition("l")
        numbers = [int(word) for word in re.findall(r"-?\d+", moves)]
        steps = np.array(numbers).reshape(-1, 2)
        found.append([tuple(p) for p in ((np.array(start.split(), dtype=int) + np.cumsum(steps, 0)) / 2).tolist()])
    return found


def test_the_outline_of_a_block_lies_half_a_voxel_outside_its_centres_in_its_own_slice() -> None:
    slices = np.zeros((3, 6, 8), dtype=np.int16)
    slices[1, 2:4, 3:7] = 5
    (line,) = points(outlines(slices))
    x, y = np.array(line).T
    assert (x.min(), x.max(), y.min(), y.max()) == (3, 7, 6 + 2, 6 + 4)
    assert len(points(outlines(np.where(slices == 5, 0, 7)))) == 4  # the rest: two whole slices, a rim and its hole


def test_labels_that_touch_the_edge_of_a_slice_are_closed_there() -> None:
    (line,) = points(outlines(np.ones((1, 4, 5), dtype=np.int16)))
    x, y = np.array(line).T
    assert (x.min(), x.max(), y.min(), y.max()) == (0, 5, 0, 4)


def test_grey_pictures_go_from_the_window_s_black_to_its_white() -> None:
    slices = np.linspace(-1, 3, 64, dtype=np.float32).reshape(1, 8, 8).repeat(2, 0)
    seen = pixels(grey(slices, (0.0, 2.0), 100))
    assert seen.shape == (16, 8, 3) and seen[0].max() < 20 and seen[7].min() > 235
    low, high = window_of(slices)
    assert -1 <= low < -0.9 and 2.9 < high < 3.3


def test_of_large_slices_smaller_pictures_are_made() -> None:
    assert pixels(grey(np.zeros((2, 600, 300), np.float32), (0, 1), 288)).shape == (2 * 288, 144, 3)
    assert pixels(coloured(np.ones((3, 30, 60)), determinants(), 20)).shape == (3 * 10, 20, 3)


def test_determinants_are_white_at_one_blue_below_red_above_and_yellow_where_the_map_folds() -> None:
    values = np.array([[[-1.0, 0.0, 1e-3, 1.0, 2.0, 9.0]]])
    seen = pixels(coloured(values, determinants(), 100))[0]
    assert (seen[0] == seen[1]).all() and tuple(seen[0]) == (255, 214, 0)
    assert seen[2].argmax() == 2 and seen[3].min() > 245 and seen[4].argmax() == 0 and (seen[4] == seen[5]).all()
    assert lengths(0.0).high > 0 and "linear-gradient(" in lengths(2.0).css()


def test_the_lines_of_a_grid_that_is_not_moved_are_straight_and_those_of_a_shifted_one_shifted() -> None:
    plane = Plane("axial", (0, 1), "LRPA", (1, 3), (slice(2, 9), slice(0, 6)), (7.0, 6.0))
    still, moved = torch.zeros(3, 10, 6, 5), torch.zeros(3, 10, 6, 5)
    moved[0], moved[1] = 1.0, -2.0
    first, second = lattice(plane, still), lattice(plane, moved)
    assert first.count("<svg") == 2 and 'y="6"' in first and 'viewBox="0 0 70 60"' in first

    def starts(text: str) -> np.ndarray:
        return np.array([[int(x), int(y)] for x, y in re.findall(r"M(-?\d+) (-?\d+)", text)])

    # To the right by a voxel; and down, as the field points to where the axis begins.
    assert (starts(second) - starts(first) == (10, 20)).all()
    assert set(re.findall(r"\dl([^M\"]*)", first)) == {" ".join(["10 0"] * 6), " ".join(["0 10"] * 5)}
