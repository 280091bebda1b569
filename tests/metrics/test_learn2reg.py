"""The official Learn2Reg evaluation, written anew from its definition with scipy and SimpleITK, gives our numbers.

What it does is at https://github.com/MDL-UzL/L2R (evaluation). Where it is wrong, ours is shown beside it.
"""

import numpy as np
import pytest
import SimpleITK as sitk
import torch
from scipy import ndimage
from torch import Tensor

from regnet import metrics, ops
from tests.metrics.test_distance import _blobs, _slow

SHAPE = (14, 12, 13)


def _flow(scale: float = 1.0) -> Tensor:
    rough = torch.randn(1, 3, *SHAPE, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    return scale * torch.from_numpy(ndimage.gaussian_filter(rough.numpy(), (0, 0, 1.5, 1.5, 1.5))) * 8


def _official_determinant(flow: np.ndarray) -> np.ndarray:
    """Central differences with zeros beyond the grid, identity added, two voxels cut off: the protocol's."""
    kernel = np.array([-0.5, 0, 0.5])
    gradient = [[ndimage.correlate1d(u, kernel, axis, mode="constant") for axis in range(3)] for u in flow]
    jacobian = np.moveaxis(np.array(gradient), (0, 1), (-2, -1)) + np.eye(3)
    return np.linalg.det(jacobian[2:-2, 2:-2, 2:-2])


def _official_sdlogj(flow: np.ndarray, mask: np.ndarray | None = None) -> float:
    logarithm = np.log(np.clip(_official_determinant(flow) + 3, 1e-9, 1e9))
    return float((logarithm if mask is None else logarithm[mask[2:-2, 2:-2, 2:-2]]).std())


def test_sdlogj_is_the_official_one_with_its_three() -> None:
    flow = _flow(0.8)
    mask = torch.rand(1, 1, *SHAPE, generator=torch.Generator().manual_seed(6)) > 0.5
    official, masked = _official_sdlogj(flow[0].numpy()), _official_sdlogj(flow[0].numpy(), mask[0, 0].numpy())
    assert metrics.sdlogj(flow, offset=3, margin=2) == pytest.approx(official)
    assert metrics.sdlogj(flow, mask, offset=3, margin=2) == pytest.approx(masked)
    assert metrics.sdlogj(flow, margin=2) > 2 * official  # without the 3, as the figure is defined


def test_the_official_fold_count_is_always_zero_and_ours_is_not() -> None:
    flow = _flow(3.0)
    official = int((np.clip(_official_determinant(flow[0].numpy()) + 3, 1e-9, 1e9) <= 0).sum())
    assert official == 0
    mask = torch.zeros(1, 1, *SHAPE)
    mask[..., 2:-2, 2:-2, 2:-2] = 1
    folds = int((_official_determinant(flow[0].numpy()) <= 0).sum())
    assert folds > 10
    assert metrics.folding_fraction(flow, mask) * mask.sum() == pytest.approx(folds)


def test_dice_and_hd95_are_the_official_ones_also_where_labels_are_missing() -> None:
    moving, fixed = _blobs(1, *SHAPE), _blobs(2, *SHAPE)
    moving[0, 0, 0], fixed[1, 1, 1] = 3, 4  # found in one image alone: not scored
    moving[0, 0, 1] = fixed[0, 0, 1] = 5  # in both, but the warp loses it
    flow = _flow()
    flow[:, :, 0] = 0
    flow[:, 0, 0] = 5
    at = np.indices(SHAPE) + flow[0].numpy()
    warped = ndimage.map_coordinates(moving.numpy(), at, order=0)

    labels = metrics.common_labels(fixed, moving)
    assert labels == [1, 2, 5]
    ours = ops.warp_labels(moving[None, None], flow, mode="nearest")[0, 0]
    # scipy shows nothing beyond the outer voxels' centres, we look half a voxel further; see `--labels learn2reg`.
    ours[torch.from_numpy(((at < 0) | (at > np.array(SHAPE).reshape(3, 1, 1, 1) - 1)).any(0))] = 0
    assert torch.equal(ours, torch.from_numpy(warped))
    measure = sitk.LabelOverlapMeasuresImageFilter()
    measure.Execute(sitk.GetImageFromArray(fixed.numpy()), sitk.GetImageFromArray(warped))
    dice = metrics.dice(ours, fixed, labels)
    assert dice == pytest.approx({1: measure.GetDiceCoefficient(1), 2: measure.GetDiceCoefficient(2), 5: 0})

    distances = metrics.hd95(ours, fixed, labels=labels)
    for label in (1, 2):
        assert distances[label] == pytest.approx(_slow(warped == label, fixed.numpy() == label, 1.0)["hd95"])
    assert np.isnan(distances[5])  # officially infinite, and with it the mean of the case


def test_the_landmark_error_is_the_official_one() -> None:
    generator = torch.Generator().manual_seed(7)
    flow, spacing = _flow(), np.array([1.5, 1.0, 2.5])
    fixed = 2 + torch.rand(9, 3, generator=generator, dtype=torch.float64) * 7
    moving = fixed + torch.randn(9, 3, generator=generator, dtype=torch.float64)
    shift = np.stack([ndimage.map_coordinates(u, fixed.T.numpy()) for u in flow[0].numpy()], 1)
    official = np.linalg.norm((fixed.numpy() + shift - moving.numpy()) * spacing, axis=1)
    size = torch.from_numpy(spacing)
    ours = metrics.target_registration_error(metrics.map_voxels(flow, fixed) * size, moving * size)
    assert ours.numpy() == pytest.approx(official)
