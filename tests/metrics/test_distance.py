"""HD95 against a brute-force search and SimpleITK's Hausdorff distance."""

import itertools
import math

import numpy as np
import pytest
import SimpleITK as sitk
import torch

from regnet.metrics import hd95


def _blobs(seed: int, *shape: int) -> torch.Tensor:
    """Smooth random labels 0 to 2."""
    noise = torch.rand(1, 1, *shape, generator=torch.Generator().manual_seed(seed))
    pool = torch.nn.functional.avg_pool2d if len(shape) == 2 else torch.nn.functional.avg_pool3d
    smooth = pool(noise, 5, 1, 2, count_include_pad=False)[0, 0]
    return (smooth > smooth.quantile(0.5)).long() + (smooth > smooth.quantile(0.8)).long()


def _slow_hd95(a: np.ndarray, b: np.ndarray, spacing: tuple[float, ...]) -> float:
    """Every surface voxel of one against every one of the other."""

    def surface(inside: np.ndarray) -> np.ndarray:
        padded = np.pad(inside, 1)
        core = tuple(slice(1, -1) for _ in inside.shape)
        buried = inside.copy()
        for axis, step in itertools.product(range(inside.ndim), (-1, 1)):
            buried &= np.roll(padded, step, axis)[core]
        return np.argwhere(inside & ~buried) * np.asarray(spacing)

    one, two = surface(a), surface(b)
    distances = np.linalg.norm(one[:, None] - two[None], axis=-1)
    return max(np.percentile(distances.min(1), 95), np.percentile(distances.min(0), 95))


@pytest.mark.parametrize(("shape", "spacing"), [((24, 17), (1.5, 0.7)), ((13, 12, 15), (1.0, 2.0, 1.25))])
@pytest.mark.parametrize("seed", range(4))
def test_hd95_is_what_an_exhaustive_search_finds(shape: tuple[int, ...], spacing: tuple[float, ...], seed: int) -> None:
    a, b = _blobs(seed, *shape), _blobs(seed + 100, *shape)
    found = hd95(a, b, spacing)
    assert found.keys() == {1, 2}
    for label, value in found.items():
        assert value == pytest.approx(_slow_hd95(a.numpy() == label, b.numpy() == label, spacing))


def test_hd95_of_two_shifted_boxes_is_the_shift_and_at_most_simpleitk_s_hausdorff_distance() -> None:
    a, b = torch.zeros(2, 30, 12, 14, dtype=torch.uint8)
    a[4:14, 3:9, 4:10], b[11:21, 3:9, 4:10] = 3, 3
    assert hd95(a, b, (2.0, 1.0, 1.0)) == {3: 14.0}
    images = [sitk.GetImageFromArray(box.numpy()) for box in (a, b)]
    for image in images:
        image.SetSpacing((1.0, 1.0, 2.0))
    measure = sitk.HausdorffDistanceImageFilter()
    measure.Execute(*images)
    assert measure.GetHausdorffDistance() == pytest.approx(14)


def test_hd95_passes_over_the_worst_twentieth() -> None:
    a, b = torch.zeros(2, 100, 40, dtype=torch.int32)
    a[:, :20], b[:, :20] = 1, 1
    b[50, :28] = 1  # a spike of 8 voxels, 3 % of the surface
    assert hd95(a, b) == {1: 0.0}


def test_hd95_of_equal_maps_is_zero_up_to_the_faces_of_the_grid() -> None:
    full = torch.full((5, 4, 6), 2, dtype=torch.int64)
    assert hd95(full, full) == {2: 0.0}


def test_hd95_of_a_label_missing_from_either_map_is_nan() -> None:
    a, b = torch.tensor([[1, 1], [0, 2]]), torch.tensor([[1, 1], [3, 0]])
    found = hd95(a, b)
    assert found[1] == 0 and math.isnan(found[2]) and math.isnan(found[3])
    assert math.isnan(hd95(a, b, labels=[9])[9])
    assert hd95(torch.zeros_like(a), torch.zeros_like(a)) == {}


def test_label_maps_and_spacings_that_do_not_fit_are_refused() -> None:
    a = torch.ones(4, 5, dtype=torch.int64)
    with pytest.raises(ValueError, match="one shape"):
        hd95(a, a.T)
    with pytest.raises(ValueError, match="spacing must be"):
        hd95(a, a, (1.0, 2.0, 3.0))
