"""Laws of the global correlation."""

import numpy as np
import pytest
import torch

from regnet.losses import ncc
from tests.losses.cases import pair


@pytest.mark.parametrize("shape", [(2, 3, 9, 8), (2, 2, 5, 7, 6), (1, 1, 17)])
def test_ncc_is_one_minus_pearsons_coefficient(shape: tuple[int, ...]) -> None:
    x, y = pair(shape)
    both = zip(x.reshape(-1, x[0, 0].numel()), y.reshape(-1, x[0, 0].numel()), strict=True)
    coefficients = np.array([np.corrcoef(a.numpy(), b.numpy())[0, 1] for a, b in both])
    assert float(ncc(x, y)) == pytest.approx(float(np.mean(1 - coefficients)), abs=1e-12)
    assert float(ncc(x, y, squared=True)) == pytest.approx(float(np.mean(1 - coefficients**2)), abs=1e-12)


@pytest.mark.parametrize(("gain", "offset"), [(1.0, 1e4), (255.0, 0.0), (1e-3, -7.0)])
def test_ncc_of_an_image_with_itself_is_zero_at_any_offset_and_gain_in_float32(gain: float, offset: float) -> None:
    x, _ = pair((1, 2, 12, 13, 9), torch.float32)
    assert float(ncc(gain * x + offset, x)) == pytest.approx(0, abs=2e-6)
    assert float(ncc(-gain * x + offset, x)) == pytest.approx(2, abs=2e-6)
    assert float(ncc(-gain * x + offset, x, squared=True)) == pytest.approx(0, abs=4e-6)


def test_texture_that_float32_barely_holds_is_not_flat() -> None:
    x, _ = pair((1, 2, 12, 13, 9), torch.float32)
    faint = 4 * x + 1e6  # a step of float32 there is 1/16
    assert float(ncc(faint, faint)) == pytest.approx(0, abs=2e-6)
    assert float(ncc(-faint, faint)) == pytest.approx(2, abs=2e-6)


def test_ncc_ignores_what_lies_outside_the_mask() -> None:
    x, y = pair((2, 2, 8, 7))
    mask = torch.zeros(1, 1, 8, 7)
    mask[..., 2:7, 1:5] = 1
    cropped = ncc(x[..., 2:7, 1:5], y[..., 2:7, 1:5])
    assert torch.allclose(ncc(torch.where(mask > 0, x, 100), y, mask), cropped)


@pytest.mark.parametrize("value", [0.0, 1e4, 1 / 3])
def test_ncc_counts_what_faces_nothing_as_unlike_and_leaves_out_nothing_facing_nothing(value: float) -> None:
    x, _ = pair((1, 2, 9, 8), torch.float32)
    flat = torch.full_like(x, value).requires_grad_()
    assert ncc(flat, x).item() == 1
    nothing = ncc(flat, torch.full_like(x, 3.0))
    nothing.backward()
    assert nothing.item() == 0 and not flat.grad.any()
    half = torch.cat([flat[:, :1].detach(), x[:, 1:]], dim=1)
    assert float(ncc(half, half)) == pytest.approx(0, abs=1e-6)


def test_faint_and_shifted_images_are_told_from_flat_ones_as_their_type_can() -> None:
    x, y = pair((1, 1, 9, 8))
    assert float(ncc(x + 1e6, x)) == pytest.approx(0, abs=1e-7)
    torch.testing.assert_close(ncc(x + 1e6, y), ncc(x, y), atol=1e-7, rtol=1e-7)
    faint = (1e-25 * x.float()).requires_grad_()
    value = ncc(faint, 1e-25 * y.float())
    value.backward()
    torch.testing.assert_close(value, ncc(x.float(), y.float()))
    assert faint.grad.isfinite().all() and faint.grad.any()
    flat = torch.full_like(x, 1 / 3)
    assert ncc(flat, flat) == 0 and ncc(flat, x) == 1
