"""Dice against counts done by hand and SimpleITK."""

import math

import pytest
import SimpleITK as sitk
import torch

from regnet.metrics import common_labels, dice


def _labels(seed: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, 5, shape, generator=torch.Generator().manual_seed(seed), dtype=torch.int16)


@pytest.mark.parametrize("shape", [(9, 8), (7, 6, 5)])
def test_dice_is_that_of_simpleitk(shape: tuple[int, ...]) -> None:
    a, b = _labels(0, *shape), _labels(1, *shape)
    measure = sitk.LabelOverlapMeasuresImageFilter()
    measure.Execute(sitk.GetImageFromArray(a.numpy()), sitk.GetImageFromArray(b.numpy()))
    assert dice(a, b) == pytest.approx({label: measure.GetDiceCoefficient(label) for label in range(1, 5)})


def test_dice_is_zero_where_one_map_lacks_the_label_and_nan_where_both_do() -> None:
    # C-33: label 1 equal in both, 2 in the prediction alone, 3 in neither
    a, b = torch.tensor([1, 1, 2, 0]), torch.tensor([1, 1, 0, 0])
    found = dice(a, b, [1, 2, 3])
    assert found[1] == 1 and found[2] == 0 and math.isnan(found[3])
    assert dice(a, b) == {1: 1.0, 2: 0.0}
    assert dice(torch.zeros(3, dtype=torch.uint8), torch.zeros(3, dtype=torch.uint8)) == {}


def test_common_labels_are_those_that_both_images_show() -> None:
    assert common_labels(torch.tensor([0, 5, 2, 2]), torch.tensor([[2, 7], [5, 0]])) == [2, 5]
    assert common_labels(torch.tensor([0, -3, 70_000]), torch.tensor([-3, 1, 70_000])) == [-3, 70_000]
    assert common_labels(torch.zeros(3, dtype=torch.uint8), torch.ones(3, dtype=torch.uint8)) == []


def test_dice_takes_labels_of_any_size_and_type() -> None:
    a = torch.tensor([0, 2_000_000_000, -3, 7])
    assert dice(a, a.to(torch.int64)) == {-3: 1.0, 7: 1.0, 2_000_000_000: 1.0}
    assert dice(torch.tensor([1, 2], dtype=torch.uint8), torch.tensor([1, 3], dtype=torch.int32)) == {1: 1, 2: 0, 3: 0}


def test_label_maps_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(ValueError, match="one shape"):
        dice(_labels(0, 4, 5), _labels(0, 5, 4))
    with pytest.raises(ValueError, match="must be of integers"):
        dice(torch.rand(4, 5), torch.rand(4, 5))
