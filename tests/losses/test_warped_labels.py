"""Laws of the overlap of warped labels: what indicators of every label would give."""

import math

import pytest
import torch
from torch import Tensor

from regnet import ops
from regnet.losses import cross_entropy, soft_dice, warped_cross_entropy, warped_dice

LABELS = [3, 70000, 5]


def _problem(shape: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Labels in blocks and one that no one asks for; a field that leaves the view; a mask."""
    generator = torch.Generator().manual_seed(len(shape))
    values = torch.tensor([0, 3, 5, 70000, 9])
    moving = values[torch.randint(0, 5, (2, 1, *(n + 1 for n in shape)), generator=generator)]
    moving[:, :, 2:] = 3
    fixed = values[torch.randint(0, 5, (2, 1, *shape), generator=generator)]
    flow = 3 * torch.rand(2, len(shape), *shape, generator=generator, dtype=torch.float64) - 1.5
    return moving, fixed, flow, torch.rand(2, 1, *shape, generator=generator, dtype=torch.float64)


def _indicators(labels: Tensor) -> Tensor:
    return (labels == torch.tensor(LABELS).view(1, -1, *[1] * (labels.dim() - 2))).double()


def _warp(image: Tensor, flow: Tensor) -> Tensor:
    return ops.warp(image, flow, bound="replicate", extrapolate="edge")


def _both(one: Tensor, other: Tensor, flow: Tensor | list[Tensor]) -> None:
    """The same value and the same gradient, in the field or in the field of each."""
    torch.testing.assert_close(one, other, atol=1e-13, rtol=1e-13)
    flows = flow if isinstance(flow, list) else [flow, flow]
    gradients = [torch.autograd.grad(*each)[0] for each in zip((one, other), flows, strict=True)]
    assert gradients[1].abs().max() > 1e-3
    torch.testing.assert_close(*gradients, atol=1e-13, rtol=1e-11)


@pytest.mark.parametrize("shape", [(7, 6), (5, 6, 7), (9,)])
@pytest.mark.parametrize("denominator", ["squares", "sums"])
@pytest.mark.parametrize("masked", [False, True])
def test_dice_is_that_of_warped_indicators(shape: tuple[int, ...], denominator: str, masked: bool) -> None:
    moving, fixed, flow, weight = _problem(shape)
    mask = weight if masked else None
    flow.requires_grad_()
    expected = soft_dice(_warp(_indicators(moving), flow), _indicators(fixed), mask, denominator)
    _both(warped_dice(moving, fixed, flow, LABELS, mask, denominator), expected, flow)


@pytest.mark.parametrize("shape", [(7, 6), (5, 6, 7)])
def test_cross_entropy_is_that_of_warped_indicators(shape: tuple[int, ...]) -> None:
    moving, fixed, flow, mask = _problem(shape)
    flow.requires_grad_()
    expected = cross_entropy(_warp(_indicators(moving), flow), _indicators(fixed), mask)
    _both(warped_cross_entropy(moving, fixed, flow, LABELS, mask), expected, flow)


def test_labels_thrown_out_of_the_image_are_missed() -> None:
    moving, fixed, flow, _ = _problem((5, 6, 7))
    far = torch.full_like(flow, 100)
    assert warped_dice(moving, fixed, far) == 1
    assert warped_cross_entropy(moving, torch.full_like(fixed, 3), far) == pytest.approx(-math.log(0.01))


def test_what_a_mask_hides_may_be_nan() -> None:
    moving, fixed, flow, mask = _problem((7, 6))
    mask[..., 2:4, 3] = 0
    flow[..., 3, 3] = torch.nan
    flow.requires_grad_()
    clean = flow.detach().nan_to_num(50).requires_grad_()
    for loss in (warped_dice, warped_cross_entropy):
        _both(loss(moving, fixed, clean, LABELS, mask), loss(moving, fixed, flow, LABELS, mask), [clean, flow])


def test_a_large_map_is_done_in_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    moving, fixed, flow, mask = _problem((5, 6, 7))
    flow.requires_grad_()
    for loss in (warped_dice, warped_cross_entropy):
        monkeypatch.undo()
        whole = loss(moving, fixed, flow, LABELS, mask)
        monkeypatch.setattr("regnet.losses._votes._SLAB", 17)
        _both(loss(moving, fixed, flow, LABELS, mask), whole, flow)


@pytest.mark.parametrize("loss", [warped_dice, warped_cross_entropy])
def test_a_field_that_puts_every_label_in_place_has_no_loss(loss) -> None:  # type: ignore[no-untyped-def]
    fixed = torch.zeros(1, 1, 9, 8, 7, dtype=torch.uint8)
    fixed[..., 2:6, 2:6, 2:5], fixed[..., 3:5, 3:5, 3:4] = 4, 9
    flow = torch.zeros(1, 3, 9, 8, 7)
    flow[:, 0] = 1
    moving = fixed.roll(1, dims=2)
    assert float(loss(moving, fixed, flow)) == pytest.approx(0, abs=1e-6)
    half_way = (flow - 0.5).movedim(1, -1).contiguous().movedim(-1, 1).requires_grad_()
    value = loss(moving, fixed, half_way)
    value.backward()
    assert value.item() > 0.01
    # a step along the axis of the shift lowers it
    assert half_way.grad[:, 0].sum() < 0


def test_without_a_label_there_is_no_loss_and_no_gradient() -> None:
    flow, labels = torch.zeros(1, 2, 4, 5, requires_grad=True), torch.zeros(1, 1, 4, 5, dtype=torch.int16)
    for loss in (warped_dice, warped_cross_entropy):
        value = loss(labels, labels, flow)
        value.backward()
        assert value.item() == 0 and not flow.grad.any()


def test_half_precision_fields_are_read_in_float32() -> None:
    moving, fixed, flow, _ = _problem((5, 6, 7))
    half = flow.half().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        value = warped_dice(moving, fixed, half)
    value.backward()
    assert value.dtype == torch.float32 and half.grad.dtype == torch.float16
    assert value.item() == pytest.approx(float(warped_dice(moving, fixed, half.detach().double())), rel=1e-5)


def test_nan_reaches_the_loss() -> None:
    moving, fixed, flow, _ = _problem((7, 6))
    flow[0, 0, 3, 3] = torch.nan
    for loss in (warped_dice, warped_cross_entropy):
        assert loss(moving, fixed, flow).isnan()


def test_labels_that_are_no_integers_or_on_another_grid_are_refused() -> None:
    moving, fixed, flow, _ = _problem((7, 6))
    for loss in (warped_dice, warped_cross_entropy):
        with pytest.raises(ValueError, match="moving labels must be integers"):
            loss(moving.float(), fixed, flow)
        with pytest.raises(ValueError, match="must share a grid"):
            loss(moving, fixed[..., :5], flow)
        with pytest.raises(ValueError, match="fixed labels must be integers"):
            loss(moving, fixed[:1], flow)
    with pytest.raises(ValueError, match="denominator must be one of"):
        warped_dice(moving, fixed, flow, denominator="means")
    with pytest.raises(ValueError, match="smooth must be between"):
        warped_cross_entropy(moving, fixed, flow, smooth=0.0)
