"""Laws of the differences of intensity."""

import pytest
import torch
from torch import Tensor

from regnet.losses import charbonnier, geman_mcclure, mae, mse


def _constant(difference: float) -> tuple[Tensor, Tensor]:
    y = torch.rand(2, 2, 5, 4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return y + difference, y


def test_a_constant_difference_has_the_value_of_one_voxel() -> None:
    x, y = _constant(-3.0)
    assert float(mse(x, y)) == pytest.approx(9)
    assert float(mae(x, y)) == pytest.approx(3)
    # sqrt(3² + 4²) - 4 = 1
    assert float(charbonnier(x, y, 4.0)) == pytest.approx(1)
    # 9 / (9 + 16)
    assert float(geman_mcclure(x, y, 4.0)) == pytest.approx(0.36)


def test_an_outlier_counts_linearly_or_as_one_voxel() -> None:
    x, y = _constant(1e6)
    assert float(charbonnier(x, y, 0.01)) == pytest.approx(1e6)
    assert float(geman_mcclure(x, y, 0.1)) == pytest.approx(1)


def test_a_small_difference_does_not_cancel_in_float32() -> None:
    # d² / (2 scale) = 1e-8 / 2, where scale + d² / (2 scale) is scale to float32
    x, y = torch.full((1, 1, 5, 4), 1e-4), torch.zeros(1, 1, 5, 4)
    assert float(charbonnier(x, y, 1.0)) == pytest.approx(0.5e-8, rel=1e-5)


def test_equal_images_have_no_loss_and_no_gradient() -> None:
    for loss in (mse, mae, charbonnier, geman_mcclure):
        x, y = _constant(0.0)
        value = loss(x.requires_grad_(), y)
        value.backward()
        assert value.item() == 0 and not x.grad.any()


def test_the_mean_is_over_the_mask_whatever_surrounds_it() -> None:
    # C-28: error 1 inside a 5x5 mask, 9 outside
    error, mask = torch.full((1, 1, 10, 10), 9.0), torch.zeros(1, 1, 10, 10)
    error[..., :5, :5], mask[..., :5, :5] = 1, 1
    padded, padded_mask = (torch.nn.functional.pad(image, (0, 10, 0, 10)) for image in (error, mask))
    for loss in (mse, mae):
        assert float(loss(error, torch.zeros_like(error), mask=mask)) == 1
        assert float(loss(padded, torch.zeros_like(padded), mask=padded_mask)) == 1
    assert float(mse(error, torch.zeros_like(error))) == 0.25 * 1 + 0.75 * 81


def test_what_the_mask_leaves_out_may_be_nan() -> None:
    x, y = _constant(2.0)
    mask = torch.ones(1, 1, 5, 4, 3)
    x[..., 0, 0, 0], mask[..., 0, 0, 0] = torch.nan, 0
    x.requires_grad_()
    value = mse(x, y, mask)
    value.backward()
    assert value.item() == pytest.approx(4)


def test_a_scale_that_is_not_positive_is_refused() -> None:
    x, y = _constant(1.0)
    for loss in (charbonnier, geman_mcclure):
        with pytest.raises(ValueError, match="scale must be positive"):
            loss(x, y, 0.0)
