"""Laws of the overlap of soft label maps."""

import math

import pytest
import torch

from regnet.losses import cross_entropy, soft_dice


def _maps(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("shape", [(2, 3, 5, 4), (1, 2, 4, 3, 5)])
def test_soft_dice_of_equal_soft_maps_is_zero(shape: tuple[int, ...]) -> None:
    x = _maps(*shape)
    assert float(soft_dice(x, x)) == pytest.approx(0, abs=1e-12)


def test_soft_dice_of_hard_maps_is_the_usual_coefficient() -> None:
    # |A| = 4, |B| = 6, |A and B| = 2: Dice 4 / 10
    x, y = torch.zeros(1, 1, 1, 10), torch.zeros(1, 1, 1, 10)
    x[..., :4], y[..., 2:8] = 1, 1
    assert float(soft_dice(x, y)) == pytest.approx(0.6)


def test_soft_dice_leaves_out_labels_in_neither_map_and_counts_those_in_one() -> None:
    # C-33 as a loss: label 1 equal in both, 2 in one, 3 in neither
    x, y = torch.zeros(1, 3, 4, 5), torch.zeros(1, 3, 4, 5)
    x[:, 0, :2], y[:, 0, :2], x[:, 1, 2:] = 1, 1, 1
    assert float(soft_dice(x, y)) == pytest.approx(0.5)


def test_soft_dice_of_no_labels_is_zero_with_zero_gradient() -> None:
    x = torch.zeros(1, 2, 4, 5, requires_grad=True)
    value = soft_dice(x, torch.zeros(1, 2, 4, 5))
    value.backward()
    assert value.item() == 0 and not x.grad.any()


def test_soft_dice_ignores_what_lies_outside_the_mask() -> None:
    x, y, mask = _maps(2, 3, 6, 5), _maps(2, 3, 6, 5).flip(2), torch.zeros(1, 1, 6, 5)
    mask[..., 1:4, :3] = 1
    assert torch.allclose(soft_dice(x, y, mask), soft_dice(x[..., 1:4, :3], y[..., 1:4, :3]))


def test_the_denominators_agree_on_hard_maps_and_differ_on_soft_ones() -> None:
    x, y = _maps(2, 3, 5, 4), _maps(2, 3, 5, 4).flip(2)
    hard = (x > 0.5).double(), (y > 0.5).double()
    assert torch.allclose(soft_dice(*hard), soft_dice(*hard, denominator="sums"))
    # equal maps of 1/2 everywhere: 2 * 1/4 / (1/2 + 1/2)
    half = torch.full((1, 1, 3, 4), 0.5)
    assert float(soft_dice(half, half)) == 0
    assert float(soft_dice(half, half, denominator="sums")) == pytest.approx(0.5)


@pytest.mark.parametrize(("denominator", "squared"), [("squares", True), ("sums", False)])
def test_soft_dice_is_that_of_others_where_every_label_is_present(denominator: str, squared: bool) -> None:
    monai = pytest.importorskip("monai.losses")
    x, y = _maps(2, 3, 5, 4).requires_grad_(), _maps(2, 3, 5, 4).flip(3)
    theirs = monai.DiceLoss(squared_pred=squared, smooth_nr=0, smooth_dr=1e-15)(x, y)
    ours = soft_dice(x, y, denominator=denominator)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(torch.autograd.grad(ours, x), torch.autograd.grad(theirs, x))


def test_soft_dice_with_squares_is_neurite_s() -> None:
    neurite = pytest.importorskip("neurite.nn.functional")
    x, y = _maps(2, 3, 5, 4), _maps(2, 3, 5, 4).flip(3)
    theirs = torch.stack([neurite.dice(x[n : n + 1], y[n : n + 1]).mean() for n in range(2)]).mean()
    assert float(soft_dice(x, y)) == pytest.approx(1 - abs(float(theirs)), abs=1e-5)


def test_cross_entropy_of_hard_maps_counts_the_voxels_in_the_wrong_label() -> None:
    # 10 voxels: truth 1 1 1 2 2 2 0 0 0 0, guess 1 1 2 2 2 0 0 0 0 1: 3 wrong
    truth, guess = torch.tensor([1, 1, 1, 2, 2, 2, 0, 0, 0, 0]), torch.tensor([1, 1, 2, 2, 2, 0, 0, 0, 0, 1])
    x, y = (torch.stack([image == label for label in (1, 2)]).double()[None] for image in (guess, truth))
    assert float(cross_entropy(x, y, smooth=0.1)) == pytest.approx(-0.3 * math.log(0.1))
    assert float(cross_entropy(y, y, smooth=0.1)) == pytest.approx(0)


def test_cross_entropy_of_soft_maps_is_torch_s() -> None:
    scores, truth = _maps(2, 4, 5, 6), torch.randint(0, 4, (2, 5, 6), generator=torch.Generator().manual_seed(0))
    expected = torch.nn.functional.cross_entropy(scores, truth)
    one_hot = torch.nn.functional.one_hot(truth, 4).movedim(-1, 1).double()
    found = cross_entropy(scores.softmax(1)[:, 1:], one_hot[:, 1:], smooth=1e-12)
    assert float(found) == pytest.approx(float(expected))


def test_settings_out_of_range_are_refused() -> None:
    x = _maps(2, 3, 6, 5)
    with pytest.raises(ValueError, match="label maps must both be"):
        soft_dice(x, x[:, :2])
    with pytest.raises(ValueError, match="denominator must be one of squares, sums"):
        soft_dice(x, x, denominator="means")
    for smooth in (0.0, 1.0):
        with pytest.raises(ValueError, match="smooth must be between 0 and 1"):
            cross_entropy(x, x, smooth=smooth)


def test_cross_entropy_takes_one_weight_for_all_labels() -> None:
    with pytest.raises(ValueError, match="mask must be"):
        cross_entropy(_maps(2, 3, 5, 4), _maps(2, 3, 5, 4), torch.ones(2, 3, 5, 4))
