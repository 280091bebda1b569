"""Laws of the penalties on the Jacobian determinant."""

import math

import pytest
import torch
from torch import Tensor

from regnet.losses import folding_penalty, log_jacobian
from tests.losses.cases import field, weights
from tests.losses.test_every_field import points


def _scaled(shape: tuple[int, ...], factor: float) -> Tensor:
    return (factor - 1) * torch.stack(points(*shape))[None]


@pytest.mark.parametrize("shape", [(7, 6), (5, 6, 7)])
def test_a_map_that_scales_has_the_determinant_of_its_factors(shape: tuple[int, ...]) -> None:
    # C-25: det J = factor^D; the identity is 1, not 0
    ndim = len(shape)
    for factor in (1.0, 1.5, 0.5):
        assert float(folding_penalty(_scaled(shape, factor))) == 0
        assert float(log_jacobian(_scaled(shape, factor))) == pytest.approx((ndim * math.log(factor)) ** 2)
    assert float(folding_penalty(_scaled(shape, 0.5), margin=1.0)) == pytest.approx(1 - 0.5**ndim)


@pytest.mark.parametrize("shape", [(7, 6), (5, 6, 7)])
def test_a_mirrored_axis_folds_everywhere(shape: tuple[int, ...]) -> None:
    # C-25: u = (-2 x, 0, ...) and, in the plane, (y - x, x - y): det J = -1
    x, y, *rest = points(*shape)
    for first, second in ((-2 * x, 0 * y), (y - x, x - y)):
        flow = torch.stack([first, second, *(0 * r for r in rest)])[None]
        assert float(folding_penalty(flow)) == pytest.approx(1)
        # log 0.05 + (-1 - 0.05) / 0.05 = log 0.05 - 21
        assert float(log_jacobian(flow)) == pytest.approx((math.log(0.05) - 21) ** 2)


def test_growth_and_shrinkage_by_one_factor_cost_the_same() -> None:
    grown, shrunk = (log_jacobian(_scaled((7, 6), factor)) for factor in (1.7, 1 / 1.7))
    torch.testing.assert_close(grown, shrunk)


@pytest.mark.parametrize("shape", [(2, 2, 4, 5), (1, 3, 4, 3, 5)])
@pytest.mark.parametrize("loss", [lambda u, m: folding_penalty(u, m, 0.5), lambda u, m: log_jacobian(u, m, 0.5)])
def test_it_has_its_exact_gradient_where_it_folds_too(loss, shape) -> None:  # type: ignore[no-untyped-def]
    flow, mask = (2 * field(shape)).requires_grad_(), weights(shape)
    assert float(folding_penalty(flow.detach())) > 0
    assert torch.autograd.gradcheck(lambda u: loss(u, mask), (flow,), eps=1e-6, atol=1e-8, rtol=1e-6)


def test_the_mean_is_over_the_mask() -> None:
    x, y = points(8, 6)
    flow = torch.stack([torch.where(x < 4, -2 * x, torch.zeros_like(x)), 0 * y])[None]
    mask = (x < 3).double()[None, None]
    assert float(folding_penalty(flow, mask)) == pytest.approx(1)


def test_what_does_not_fit_is_refused() -> None:
    for loss in (folding_penalty, log_jacobian):
        with pytest.raises(ValueError, match="one channel per spatial axis"):
            loss(torch.zeros(1, 3, 4, 4))
        with pytest.raises(ValueError, match="mask must be"):
            loss(torch.zeros(1, 2, 4, 4), torch.ones(1, 2, 4, 4))
    with pytest.raises(ValueError, match="floor must be"):
        log_jacobian(torch.zeros(1, 2, 4, 4), floor=0.0)
