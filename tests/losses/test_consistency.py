"""Laws of the consistency of two maps."""

import pytest
import torch

from regnet import ops
from regnet.losses import gradicon, inverse_consistency
from tests.losses.cases import field, weights


@pytest.mark.parametrize("shape", [(7, 6), (5, 6, 7)])
def test_a_shift_there_and_back_is_consistent(shape: tuple[int, ...]) -> None:
    flow = torch.ones(2, len(shape), *shape, dtype=torch.float64)
    assert float(inverse_consistency(flow, -flow)) == 0
    assert float(gradicon(flow, -flow)) == 0
    # both forward: the residual is 2 voxels along every axis, of 1, 2, 3 mm
    size = [1.0, 2.0, 3.0][: len(shape)]
    assert float(inverse_consistency(flow, flow, size)) == pytest.approx(sum((2 * s) ** 2 for s in size))
    assert float(gradicon(flow, flow, size)) == pytest.approx(0, abs=1e-20)


def test_minus_a_field_is_not_its_inverse() -> None:
    # u(x) = x / 2 and -u: r(x) = -x/2 + (x - x/2) / 2 = -x/4, so Σ (dr/dx)² = 1/16; the true inverse is -x/3
    flow = (torch.arange(12, dtype=torch.float64) / 2).view(1, 1, 12)
    assert float(gradicon(flow, -flow)) == pytest.approx(1 / 16)
    assert float(inverse_consistency(flow, -flow / 1.5)) == pytest.approx(0, abs=1e-20)


def test_the_exponentials_of_a_velocity_and_of_its_negative_are_consistent() -> None:
    velocity = field((1, 2, 24, 22))
    smooth = ops.resize(velocity[..., :5, :5], (24, 22), order=3)
    there, back = ops.integrate(smooth, bound="replicate"), ops.integrate(-smooth, bound="replicate")
    plain = inverse_consistency(smooth, -smooth)
    assert float(inverse_consistency(there, back)) < 0.1 * float(plain)


@pytest.mark.parametrize("loss", [inverse_consistency, gradicon])
@pytest.mark.parametrize("shape", [(2, 2, 4, 5), (1, 3, 4, 3, 3)])
def test_it_has_its_exact_gradient_in_both_fields(loss, shape) -> None:  # type: ignore[no-untyped-def]
    flow, mask = field(shape).requires_grad_(), weights(shape)
    back = field(shape).flip(2).requires_grad_()
    size = [1.0, 2.0, 0.5][: shape[1]]
    assert torch.autograd.gradcheck(lambda u, v: loss(u, v, size, mask), (flow, back), eps=1e-6, atol=1e-8, rtol=1e-6)


@pytest.mark.parametrize("loss", [inverse_consistency, gradicon])
def test_fields_that_do_not_fit_are_refused(loss) -> None:  # type: ignore[no-untyped-def]
    flow = torch.zeros(1, 2, 4, 5)
    with pytest.raises(ValueError, match="of one shape"):
        loss(flow, flow[..., :4])
    with pytest.raises(ValueError, match="one channel per spatial axis"):
        loss(flow[:, :1], flow[:, :1])
    with pytest.raises(ValueError, match="mask must be"):
        loss(flow, flow, mask=torch.ones(1, 1, 5, 4))
