"""Laws of the mutual information."""

import math

import numpy as np
import pytest
import torch
from scipy.interpolate import BSpline
from torch import Tensor

from regnet.losses import mutual_information
from tests.losses.cases import pair, weights


def _slow(x: Tensor, y: Tensor, bins: int, weight: Tensor, normalised: bool) -> float:
    """Voxel by voxel, bin by bin, with scipy's spline."""
    spline = BSpline.basis_element(np.arange(-2.0, 3.0), extrapolate=False)

    def windows(image: Tensor) -> np.ndarray:
        value = image.flatten().numpy()
        place = 1 + (bins - 3) * (value - value.min()) / (value.max() - value.min())
        return np.nan_to_num(spline(np.arange(bins) - place[:, None]))

    joint = np.einsum("v,vi,vj->ij", weight.flatten().numpy(), windows(x), windows(y))
    joint /= joint.sum()

    def entropy(p: np.ndarray) -> float:
        return -sum(v * math.log(v) for v in p.ravel() if v > 0)

    h_x, h_y, h_xy = entropy(joint.sum(1)), entropy(joint.sum(0)), entropy(joint)
    return 2 - (h_x + h_y) / h_xy if normalised else h_xy - h_x - h_y


@pytest.mark.parametrize("shape", [(1, 1, 9, 8), (2, 2, 5, 4, 6)])
@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_it_is_that_of_a_histogram_with_spline_windows(shape: tuple[int, ...], normalised: bool, masked: bool) -> None:
    x, y = pair(shape)
    mask = 0.1 + weights(shape)
    every = (mask if masked else torch.ones_like(mask)).expand(shape)
    one_by_one = [_slow(x[n, c], y[n, c], 7, every[n, c], normalised) for n in range(shape[0]) for c in range(shape[1])]
    found = mutual_information(x, y, 7, mask if masked else None, normalised=normalised)
    assert float(found) == pytest.approx(float(np.mean(one_by_one)), abs=1e-12)


def test_two_equal_tissues_have_one_bit() -> None:
    # Half of the voxels in either tissue, whose windows do not meet in 9 bins: I = log 2. Either marginal is
    # (1, 4, 1) / 12 twice, of entropy log 2 + h, h = -(2/6 log 1/6 + 4/6 log 4/6); the joint's is log 2 + 2 h.
    x = torch.tensor([3.0, 8.0], dtype=torch.float64).repeat(1, 1, 6, 3)
    assert float(mutual_information(x, 100 - 2 * x, 9)) == pytest.approx(-math.log(2))
    h = -(2 / 6 * math.log(1 / 6) + 4 / 6 * math.log(4 / 6))
    nmi = 2 * (math.log(2) + h) / (math.log(2) + 2 * h)
    assert float(mutual_information(x, 100 - 2 * x, 9, normalised=True)) == pytest.approx(2 - nmi)


def test_images_that_know_nothing_of_each_other_have_none() -> None:
    x = torch.linspace(0, 1, 12, dtype=torch.float64).expand(1, 1, 10, 12)
    y = torch.linspace(5, -3, 10, dtype=torch.float64)[:, None].expand(1, 1, 10, 12)
    assert float(mutual_information(x, y, 8)) == pytest.approx(0, abs=1e-12)
    assert float(mutual_information(x, y, 8, normalised=True)) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("normalised", [False, True])
def test_a_constant_image_has_none_and_finite_gradients(dtype: torch.dtype, normalised: bool) -> None:
    # C-29: NaN where the bins' width is a range of 0
    x, y = torch.zeros(1, 1, 8, 8, dtype=dtype).requires_grad_(), torch.ones(1, 1, 8, 8, dtype=dtype)
    for other in (y, pair((1, 1, 8, 8), dtype)[0]):
        value = mutual_information(x, other, 5, normalised=normalised)
        value.backward()
        assert value.item() == pytest.approx(float(normalised), abs=1e-5)
        assert x.grad.isfinite().all()


@pytest.mark.parametrize("normalised", [False, True])
def test_gain_and_offset_do_not_matter(normalised: bool) -> None:
    # C-30: bins fixed on [0, 1] put every voxel of raw data into the last one
    x = torch.rand(1, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    value, raw = (mutual_information(a, x.square(), normalised=normalised) for a in (x, 1000 * x + 50))
    assert raw.item() == pytest.approx(value.item(), abs=1e-3)
    inverted = mutual_information(-x, x.square(), normalised=normalised)
    assert inverted.item() == pytest.approx(value.item(), abs=1e-3)
    assert normalised or value.item() < -1


def test_what_lies_beyond_a_given_range_counts_at_its_ends() -> None:
    x, y = pair((1, 1, 9, 8))
    far = torch.where(x > 0.8, 1e6, x)
    near = x.clamp(max=0.8)
    one, other = (mutual_information(a, y, 8, range_x=(0.0, 0.8)) for a in (far, near))
    torch.testing.assert_close(one, other)


def test_a_large_image_is_counted_in_chunks_without_losing_voxels(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = (image.requires_grad_() for image in pair((1, 1, 13, 9)))
    mask, results = weights((1, 1, 13, 9)), []
    for chunk in (2**18, 10):
        monkeypatch.setattr("regnet.losses._histogram._CHUNK", chunk)
        value = mutual_information(x, y, 8, mask)
        results.append((value.detach(), *torch.autograd.grad(value, (x, y))))
    for whole, cut in zip(*results, strict=True):
        torch.testing.assert_close(cut, whole)


def test_too_few_bins_and_empty_ranges_are_refused() -> None:
    x, y = pair((1, 1, 9, 8))
    with pytest.raises(ValueError, match="at least 5 bins"):
        mutual_information(x, y, 4)
    with pytest.raises(ValueError, match="must grow"):
        mutual_information(x, y, range_y=(1.0, 1.0))
