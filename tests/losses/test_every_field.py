"""Laws of every loss that says how rough a field is."""

import pytest
import torch
from torch import Tensor

from tests.losses.cases import FIELDS, MASKED_FIELDS, field, weights

every = pytest.mark.parametrize("name", FIELDS)
SIZE = [1.0, 2.0, 0.5]


def points(*shape: int) -> list[Tensor]:
    return list(torch.meshgrid(*(torch.arange(n, dtype=torch.float64) for n in shape), indexing="ij"))


@every
@pytest.mark.parametrize("shape", [(2, 2, 5, 4), (1, 3, 3, 5, 4), (2, 1, 6), (1, 3, 1, 2, 4)])
@pytest.mark.parametrize("masked", [False, True])
def test_it_has_its_exact_gradient(name: str, shape: tuple[int, ...], masked: bool) -> None:
    flow = field(shape).requires_grad_()
    size, mask = SIZE[: shape[1]], weights(shape) if masked else None
    assert torch.autograd.gradcheck(
        lambda u: FIELDS[name](u, size, mask), (flow,), eps=1e-6, atol=1e-8, rtol=1e-6, check_batched_grad=False
    )


@every
@pytest.mark.parametrize("shape", [(2, 2, 6, 5), (1, 3, 4, 5, 6)])
def test_a_translation_is_not_rough(name: str, shape: tuple[int, ...]) -> None:
    assert float(FIELDS[name](torch.full(shape, 3.5, dtype=torch.float64))) == pytest.approx(0, abs=1e-12)


@every
def test_a_single_voxel_is_not_rough(name: str) -> None:
    assert float(FIELDS[name](torch.ones(1, 3, 1, 1, 1))) == 0


@every
def test_a_batch_counts_with_the_mean_over_its_samples(name: str) -> None:
    flow, sizes = field((3, 2, 6, 5)), torch.tensor([[1.0, 2.0], [3.0, 1.0], [1.0, 1.0]])
    mask = weights((3, 2, 6, 5))
    one_by_one = [FIELDS[name](flow[n : n + 1], sizes[n], mask[n : n + 1]) for n in range(3)]
    torch.testing.assert_close(FIELDS[name](flow, sizes, mask), torch.stack(one_by_one).mean())


@every
def test_it_does_not_depend_on_the_sampling(name: str) -> None:
    # C-31: u = 3 sin(x / 10) mm along every axis, in a 64 mm cube
    values = []
    for size in [(1.0, 1.0, 1.0), (2.0, 2.0, 2.0), (1.0, 1.0, 2.0)]:
        axes = points(*(round(64 / s) for s in size))
        flow = torch.stack([3 * torch.sin((p + 0.5) * s / 10) / s for p, s in zip(axes, size, strict=True)])
        values.append(float(FIELDS[name](flow[None], size)))
    assert values[1] == pytest.approx(values[0], rel=0.03)
    assert values[2] == pytest.approx(values[0], rel=0.03)


@every
def test_masking_is_cropping(name: str) -> None:
    flow, mask = field((2, 3, 7, 6, 5)), torch.zeros(1, 1, 7, 6, 5)
    inside = (..., slice(1, 6), slice(2, 6), slice(0, 4))
    mask[inside] = 1
    outside = torch.where(mask > 0, flow, 100)
    torch.testing.assert_close(FIELDS[name](outside, SIZE, mask), FIELDS[name](flow[inside], SIZE))


@every
def test_a_mask_of_one_weight_changes_nothing_and_an_empty_one_leaves_nothing(name: str) -> None:
    flow = field((2, 2, 6, 5)).requires_grad_()
    torch.testing.assert_close(FIELDS[name](flow, 1.0, torch.full((2, 1, 6, 5), 0.3)), FIELDS[name](flow))
    value = FIELDS[name](flow, 1.0, torch.zeros(1, 1, 6, 5))
    value.backward()
    assert value.item() == 0 and not flow.grad.any()


@every
def test_half_precision_and_autocast_are_computed_in_float32(name: str) -> None:
    half = field((1, 2, 16, 15)).half().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        value = FIELDS[name](half)
    value.backward()
    assert value.dtype == torch.float32 and half.grad.dtype == torch.float16
    assert value.item() == pytest.approx(float(FIELDS[name](half.detach().double())), rel=1e-5)


@every
def test_fields_sizes_and_masks_that_do_not_fit_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="one channel per spatial axis"):
        FIELDS[name](torch.zeros(1, 3, 4, 4))
    with pytest.raises(ValueError, match="must not be empty"):
        FIELDS[name](torch.zeros(0, 2, 4, 4))
    flow = torch.zeros(2, 2, 4, 4)
    for size in ((1.0, 2.0, 3.0), 0.0, (1.0, -1.0), torch.ones(3, 2)):
        with pytest.raises(ValueError, match="voxel_size must be"):
            FIELDS[name](flow, size)
    for mask in (torch.ones(4, 4), torch.ones(1, 2, 4, 4), torch.ones(1, 1, 4, 5)):
        with pytest.raises(ValueError, match="mask must be"):
            FIELDS[name](flow, 1.0, mask)


@every
def test_nan_reaches_the_loss(name: str) -> None:
    flow = field((1, 2, 7, 6))
    flow[0, 0, 3, 3] = torch.nan
    assert FIELDS[name](flow).isnan()


@pytest.mark.parametrize("name", MASKED_FIELDS)
def test_what_a_mask_hides_may_be_nan(name: str) -> None:
    flow, mask = field((2, 2, 8, 7)), torch.ones(1, 1, 8, 7)
    mask[..., :3, 2:4] = 0
    spoilt = flow.clone()
    spoilt[1, 1, 1, 2:4] = torch.tensor([torch.nan, torch.inf])  # no voxel that counts has these beside it
    spoilt[0, 0, 2, 3] = torch.nan  # and this one has
    spoilt.requires_grad_()
    value = MASKED_FIELDS[name](spoilt, 1.0, mask)
    value.backward()
    assert value.isfinite() and value.item() > 0
    assert spoilt.grad.isfinite().all() and not spoilt.grad[1, :, 1, 2:4].any()
    # what stands there instead has no say
    other = torch.where(spoilt.isfinite(), spoilt, spoilt.new_tensor(7.0)).detach()
    if name in FIELDS:
        torch.testing.assert_close(MASKED_FIELDS[name](other, 1.0, mask), value.detach())


@pytest.mark.parametrize("name", MASKED_FIELDS)
def test_whole_numbers_count_as_float32(name: str) -> None:
    flow = (3 * field((1, 2, 8, 7))).round().to(torch.int16)
    assert MASKED_FIELDS[name](flow) == MASKED_FIELDS[name](flow.float()) > 0
