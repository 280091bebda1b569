"""Laws of every loss that compares two images."""

import pytest
import torch

from tests.losses.cases import PAIRS, SHAPES, pair, weights

every = pytest.mark.parametrize("name", PAIRS)


@every
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("masked", [False, True])
def test_it_has_the_exact_gradient_in_both_images(name: str, shape: tuple[int, ...], masked: bool) -> None:
    x, y = (image.requires_grad_() for image in pair(shape))
    mask = weights(shape) if masked else None
    assert torch.autograd.gradcheck(lambda a, b: PAIRS[name](a, b, mask), (x, y), eps=1e-6, atol=1e-8, rtol=1e-6)


@every
def test_a_mask_of_ones_changes_nothing(name: str) -> None:
    x, y = pair((2, 2, 5, 6, 4))
    torch.testing.assert_close(PAIRS[name](x, y, torch.ones(1, 1, 5, 6, 4)), PAIRS[name](x, y))


@every
def test_the_scale_of_the_mask_does_not_matter(name: str) -> None:
    x, y = pair((2, 2, 5, 6, 4))
    mask = weights(x.shape)
    torch.testing.assert_close(PAIRS[name](x, y, 3 * mask), PAIRS[name](x, y, mask), atol=1e-9, rtol=1e-9)


@every
def test_a_negative_weight_counts_as_none(name: str) -> None:
    x, y = pair((1, 2, 7, 6))
    mask = torch.ones(1, 1, 7, 6)
    mask[..., :3] = 0
    assert torch.equal(PAIRS[name](x, y, torch.where(mask > 0, mask, -5)), PAIRS[name](x, y, mask))


@every
def test_an_empty_mask_gives_zero_and_zero_gradients(name: str) -> None:
    # C-28: never NaN
    x, y = (image.requires_grad_() for image in pair((2, 2, 9, 8)))
    value = PAIRS[name](x, y, torch.zeros(1, 1, 9, 8))
    value.backward()
    assert value.item() == 0 and not x.grad.any() and not y.grad.any()


@every
def test_a_batch_counts_with_the_mean_over_its_samples(name: str) -> None:
    x, y = pair((3, 2, 7, 6))
    one_by_one = [PAIRS[name](x[n : n + 1], y[n : n + 1]) for n in range(3)]
    torch.testing.assert_close(PAIRS[name](x, y), torch.stack(one_by_one).mean())


@every
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(name: str, dtype: torch.dtype) -> None:
    x, y = (image.requires_grad_() for image in pair((1, 2, 7, 6, 5), dtype))
    value = PAIRS[name](x, y)
    value.backward()
    assert value.dtype == torch.float32 and x.grad.dtype == y.grad.dtype == dtype
    assert x.grad.isfinite().all() and y.grad.isfinite().all()
    exact = PAIRS[name](x.detach().double(), y.detach().double())
    torch.testing.assert_close(value.double(), exact, atol=1e-5, rtol=1e-5)


@every
def test_autocast_changes_nothing(name: str) -> None:
    x, y = pair((1, 2, 7, 6, 5), torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        inside = PAIRS[name](x, y)
    assert torch.equal(inside, PAIRS[name](x, y))


@every
def test_images_and_masks_that_do_not_fit_are_refused(name: str) -> None:
    x, y = pair((2, 2, 9, 8))
    with pytest.raises(ValueError, match="of one shape"):
        PAIRS[name](x, y[..., :7])
    for empty in ((0, 2, 9, 8), (2, 2, 0, 8)):
        with pytest.raises(ValueError, match="must not be empty"):
            PAIRS[name](torch.ones(empty), torch.ones(empty))
    for mask in (torch.ones(9, 8), torch.ones(3, 1, 9, 8), torch.ones(2, 1, 8, 9)):
        with pytest.raises(ValueError, match="mask must be"):
            PAIRS[name](x, y, mask)


@every
def test_what_is_differentiated_once_says_so_when_asked_for_more(name: str) -> None:
    x, y = pair((1, 1, 6, 5))
    (gradient,) = torch.autograd.grad(PAIRS[name](x.requires_grad_(), y), x, create_graph=True)
    try:
        (second,) = torch.autograd.grad(gradient.square().sum(), x)
    except RuntimeError as error:
        assert "once_differentiable" in str(error) or "does not require grad" in str(error)
    else:
        assert second.isfinite().all()


@every
def test_images_may_have_any_strides(name: str) -> None:
    x, y = (image.requires_grad_() for image in pair((2, 3, 4, 5, 3)))
    across = [image.permute(0, 1, 4, 2, 3).contiguous().permute(0, 1, 3, 4, 2) for image in (x, y)]
    value, other = PAIRS[name](x, y), PAIRS[name](*across)
    torch.testing.assert_close(other, value)
    torch.testing.assert_close(torch.autograd.grad(other, (x, y)), torch.autograd.grad(value, (x, y)))


@every
def test_it_can_be_computed_in_inference_mode_as_validation_does(name: str) -> None:
    x, y = pair((1, 2, 7, 6))
    with torch.inference_mode():
        assert torch.equal(PAIRS[name](x, y), PAIRS[name](x.clone(), y.clone()))


@every
def test_nan_reaches_the_loss(name: str) -> None:
    # C-36: training stops on it, so no loss may leave it out
    x, y = pair((1, 2, 7, 6))
    x[0, 0, 3, 3] = torch.nan
    assert PAIRS[name](x, y).isnan()
    assert PAIRS[name](y, x).isnan()


@every
def test_what_a_mask_hides_may_be_nan(name: str) -> None:
    x, y = pair((1, 2, 7, 6))
    mask = torch.ones(1, 1, 7, 6, dtype=torch.float64)
    mask[0, 0, 2:4, 3] = 0
    hidden = mask.expand_as(x) == 0
    clean = x.masked_fill(hidden, 0).requires_grad_()
    spoilt = x.masked_fill(hidden, torch.nan).requires_grad_()
    value, want = PAIRS[name](spoilt, y, mask), PAIRS[name](clean, y, mask)
    assert value == want and value.isfinite()
    gradient, same = torch.autograd.grad(value, spoilt)[0], torch.autograd.grad(want, clean)[0]
    assert torch.equal(gradient.masked_fill(hidden, 0), same.masked_fill(hidden, 0))
    assert (gradient[hidden] == 0).all()


@every
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int64])
def test_whole_numbers_count_as_float32(name: str, dtype: torch.dtype) -> None:
    x, y = ((image * 201).to(dtype) for image in pair((1, 2, 7, 6)))
    if name in ("soft_dice", "soft_dice, sums", "cross_entropy"):
        x, y = x > 100, y > 100  # as F.one_hot may give them
    assert PAIRS[name](x, y) == PAIRS[name](x.float(), y.float()) != 0


@every
def test_images_and_masks_may_be_of_any_type(name: str) -> None:
    x, y = pair((1, 2, 7, 6))
    mask = weights(x.shape)
    exact = PAIRS[name](x, y, mask)
    for one, other, weight in ((x.float(), y, mask), (x, y.half(), mask.float()), (x.float(), y.float(), mask)):
        torch.testing.assert_close(PAIRS[name](one, other, weight).double(), exact, atol=2e-3, rtol=2e-3)
