"""Which slices are shown, and which way up."""

import numpy as np
import torch

from regnet.report.planes import planes_of
from regnet.report.upright import upright
from regnet.spatial import Grid


def test_the_top_left_of_an_axial_picture_is_left_and_anterior_whatever_the_axes_of_the_file() -> None:
    image = torch.zeros(12, 9, 10)
    image[2:10, 2:7, 2:8] = 1
    image[2, 6, 2:8] = 2  # left, anterior in RAS
    affine = torch.diag(torch.tensor([1.0, 2.0, 3.0, 1.0], dtype=torch.float64))
    expected = planes_of([image], (1.0, 2.0, 3.0))[0].cut(image)
    top, left = np.argwhere(expected[0] == 2)[0]
    shown = np.argwhere(expected[0] > 0)
    assert (top, left) == (shown[:, 0].min(), shown[:, 1].min())

    # The same voxels written as P L S.
    turned = image.permute(1, 0, 2).flip(0, 1)
    flipped = torch.zeros(4, 4, dtype=torch.float64)
    flipped[0, 1], flipped[1, 0], flipped[2, 2], flipped[3, 3] = -1, -2, 3, 1
    (seen,), _, spacing = upright([turned], torch.zeros(3, *turned.shape), Grid(tuple(turned.shape), flipped))
    assert spacing == (1.0, 2.0, 3.0)
    assert np.array_equal(planes_of([seen], spacing)[0].cut(seen), expected)
    assert Grid(tuple(image.shape), affine).orientation == "RAS"


def test_slices_lie_within_what_stands_out_and_planes_keep_its_proportions() -> None:
    image = torch.zeros(20, 30, 40)
    image[5:15, 6:20, 10:36] = 1
    axial, coronal, sagittal = planes_of([image], (2.0, 1.0, 0.5))
    assert min(axial.at) > 10 and max(axial.at) < 35 and len(axial.at) == 9
    assert 10 <= coronal.shape[0] <= 14 and sagittal.shape[1] == coronal.shape[1]
    assert axial.size == (axial.shape[0] * 2.0, axial.shape[1] * 1.0)
    assert coronal.size == (coronal.shape[0] * 2.0, coronal.shape[1] * 0.5)


def test_a_flat_image_has_one_plane_with_one_slice_and_an_empty_one_is_shown_whole() -> None:
    (plane,) = planes_of([torch.zeros(7, 5)], (1.0, 1.0))
    assert plane.at == (0,) and plane.shape == (7, 5)
    assert plane.cut(torch.arange(35.0).reshape(7, 5)).shape == (1, 5, 7)
