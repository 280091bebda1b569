"""The four-panel picture."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from regnet.report import four_panels, six_panels
from regnet.spatial import Grid


def _ball(*shape: int) -> Tensor:
    points = torch.stack(torch.meshgrid(*(torch.linspace(-1, 1, n) for n in shape), indexing="ij"))
    weights = torch.tensor([1.0, 2.0, 3.0])[: len(shape)].view(-1, *[1] * len(shape))
    return (points.square().sum(0) < 0.5) * (2 + (weights * points).sum(0))


def _flow(*shape: int) -> Tensor:
    points = torch.stack(torch.meshgrid(*(torch.arange(n) for n in shape), indexing="ij"))
    return torch.sin(points.float() / 5)


@pytest.mark.parametrize("shape", [(30, 24), (20, 26, 22), (18, 3, 7)])
def test_the_picture_is_written_as_it_is_returned(shape: tuple[int, ...], tmp_path) -> None:  # type: ignore[no-untyped-def]
    ball, path = _ball(*shape), tmp_path / "new" / "four.png"
    pixels = four_panels(ball, ball[None], ball, _flow(*shape), path)
    assert pixels.dtype == np.uint8 and pixels.shape[2] == 3
    assert pixels.shape[1] > 2 * pixels.shape[0]
    assert np.array_equal(np.asarray(Image.open(path)), pixels)
    assert [file.name for file in path.parent.iterdir()] == ["four.png"]
    assert np.array_equal(four_panels(ball, ball, ball, _flow(*shape), path), pixels)


def test_each_panel_shows_something_and_the_moved_one_shows_what_was_moved() -> None:
    ball, nothing = _ball(24, 24), torch.zeros(24, 24)
    pixels = four_panels(ball, ball, nothing, torch.zeros(2, 24, 24), None).astype(float)
    panels = [pixels[60:, start : start + 400] for start in (40, 520, 1000, 1480)]  # each is 480 pixels wide
    assert panels[0].max() > 200 and panels[1].max() > 200 and panels[2].max() == 0
    assert np.ptp(panels[3], axis=2).max() > 50  # coloured lines


def test_how_a_file_stores_the_axes_does_not_show() -> None:
    shape = (20, 26, 22)
    grid = Grid(shape, torch.diag(torch.tensor([2.0, 1.5, 3.0, 1.0])))
    ball, flow = _ball(*shape), _flow(*shape)
    upright = four_panels(ball, ball, ball, flow, None, grid)

    # the same stored as axes (S, L, A)
    affine = grid.affine[:, [2, 0, 1, 3]].clone()
    affine[:, 1] *= -1
    affine[0, 3] = 2.0 * (shape[0] - 1)
    other = ball.permute(2, 0, 1).flip(1)
    field = flow[[2, 0, 1]].permute(0, 3, 1, 2).flip(2)
    field[1] *= -1
    assert np.array_equal(four_panels(other, other, other, field, None, Grid(tuple(other.shape), affine)), upright)


def test_images_off_the_grid_of_the_field_are_refused() -> None:
    ball = _ball(12, 10)
    with pytest.raises(ValueError, match="images must be on the grid of the flow"):
        four_panels(ball, ball, ball.T, _flow(12, 10), None)
    with pytest.raises(ValueError, match="flow must be"):
        four_panels(ball, ball, ball, ball, None)


def test_six_panels_show_differences_and_folds_in_colours_of_their_own() -> None:
    shape = (24, 24)
    ball, flow = _ball(*shape), torch.zeros(2, *shape)
    flow[0, 12:] = -4.0  # the map folds between rows 11 and 12
    pixels = six_panels(ball, ball, ball * 0.5, flow)
    panels = [pixels[60:, 480 * number : 480 * number + 440].reshape(-1, 3).astype(int) for number in range(6)]
    red, green, blue = panels[3].T
    assert ((blue - red) > 100).any() and not ((red - blue) > 100).any()  # moved is darker than fixed
    red, green, blue = panels[4].T
    assert ((red > 200) & (green > 200) & (blue < 60)).mean() > 0.05  # yellow where it folds
    assert ((red > 250) & (blue > 250)).mean() > 0.5  # white where nothing changes
    nothing = six_panels(ball, ball, ball, torch.zeros(2, *shape))
    assert np.ptp(nothing[60:, 1480:2360].astype(int), axis=2).max() < 4  # no colour at all
