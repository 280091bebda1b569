"""Laws of the soft Dice loss."""

import pytest
import torch

from regnet.losses import soft_dice


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


def test_soft_dice_is_differentiable() -> None:
    x, y = _maps(2, 2, 3, 4).requires_grad_(), _maps(2, 2, 3, 4).flip(3)
    assert torch.autograd.gradcheck(lambda a: soft_dice(a, y), (x,), eps=1e-6, atol=1e-8, rtol=1e-6)


def test_label_maps_and_masks_that_do_not_fit_are_refused() -> None:
    x = _maps(2, 3, 6, 5)
    with pytest.raises(ValueError, match="of one shape"):
        soft_dice(x, x[:, :2])
    with pytest.raises(ValueError, match="mask must be"):
        soft_dice(x, x, torch.ones(6, 5))
