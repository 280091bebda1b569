"""Landmarks against arithmetic and scipy."""

import math

import numpy as np
import pytest
import torch
from scipy import ndimage

from regnet.metrics import map_voxels, target_registration_error
from regnet.spatial import Displacement, Grid


def test_the_error_is_in_mm_whatever_the_orientation() -> None:
    # C-34: (1, 1, 1) voxels of 1.5 x 1.5 x 3 mm are 3.6742 mm, along the axes and turned
    turn = math.radians(25)
    rotation = torch.tensor([[math.cos(turn), -math.sin(turn), 0], [math.sin(turn), math.cos(turn), 0], [0, 0, 1]])
    for axes in (torch.eye(3), rotation):
        affine = torch.eye(4)
        affine[:3, :3] = axes @ torch.diag(torch.tensor([1.5, 1.5, 3.0]))
        grid = Grid((10, 11, 12), affine)
        points = torch.tensor([[2.0, 3.0, 4.0], [5.0, 5.0, 5.0]])
        errors = target_registration_error(grid.to_world(points + 1), grid.to_world(points))
        assert errors.tolist() == pytest.approx([3.6742, 3.6742], abs=1e-4)


def test_points_go_from_fixed_to_moving_with_the_field_itself() -> None:
    # C-35: the field is +2 along axis 0, and what is bright at 10 in the moving image shows at 8 in the fixed one
    grid = Grid((16, 5), torch.eye(3))
    flow = torch.zeros(2, 16, 5)
    flow[0] = 2
    there = Displacement(flow, grid)
    moving = torch.zeros(1, 1, 16, 5)
    moving[0, 0, 10, 2] = 1
    assert there.apply(moving, grid)[0, 0].argmax() == 8 * 5 + 2
    fixed, bright = torch.tensor([[8.0, 2.0]]), torch.tensor([[10.0, 2.0]])
    assert target_registration_error(there.map_points(fixed), bright).tolist() == [0]
    assert target_registration_error(there.map_points(bright), fixed).tolist() == [4]  # the wrong way round
    assert target_registration_error(there.inverse().map_points(bright), fixed).tolist() == [0]


@pytest.mark.parametrize("shape", [(13, 9), (11, 9, 12)])
@pytest.mark.parametrize("order", [1, 3])
def test_points_between_voxels_are_mapped_as_scipy_maps_them(shape: tuple[int, ...], order: int) -> None:
    generator = torch.Generator().manual_seed(0)
    flow = torch.randn(1, len(shape), *shape, generator=generator, dtype=torch.float64)
    points = 1 + torch.rand(20, len(shape), generator=generator, dtype=torch.float64) * (torch.tensor(shape) - 3)
    shift = [ndimage.map_coordinates(u, points.T.numpy(), order=order) for u in flow[0].numpy()]
    assert np.allclose(map_voxels(flow, points, order).numpy(), points.numpy() + np.stack(shift, 1))


def test_points_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="in pairs"):
        target_registration_error(torch.zeros(3, 3), torch.zeros(4, 3))
    with pytest.raises(ValueError, match="points must be"):
        map_voxels(torch.zeros(1, 2, 4, 5), torch.zeros(3, 3))


def test_points_are_carried_by_the_field_of_one_pair() -> None:
    with pytest.raises(ValueError, match="flow must be of one pair"):
        map_voxels(torch.zeros(2, 2, 4, 5), torch.ones(3, 2))
