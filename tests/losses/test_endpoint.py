"""Laws of the distance to the true field."""

import pytest
import torch

from regnet import metrics
from regnet.losses import EndPointError, endpoint_error


def _pair(*shape: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    one, other = torch.randn(2, 2, len(shape), *shape, generator=generator, dtype=torch.float64)
    return one, other


@pytest.mark.parametrize("shape", [(4, 5), (3, 4, 5)])
def test_it_is_the_metric_of_the_same_name(shape: tuple[int, ...]) -> None:
    flow, truth = _pair(*shape)
    size = torch.tensor([[1.0, 2.0, 0.5], [3.0, 1.0, 1.0]], dtype=torch.float64)[:, : len(shape)]
    mask = torch.rand(2, 1, *shape, generator=torch.Generator().manual_seed(1)) > 0.4
    each = [metrics.endpoint_error(flow[n : n + 1], truth[n : n + 1], size[n : n + 1], mask[n : n + 1]) for n in (0, 1)]
    assert float(endpoint_error(flow, truth, size, mask)) == pytest.approx(sum(each) / 2)


@pytest.mark.parametrize("shape", [(4, 5), (3, 4, 5)])
def test_it_has_the_exact_gradient_and_none_where_the_truth_is_met_or_unknown(shape: tuple[int, ...]) -> None:
    flow, truth = _pair(*shape)
    truth[0, :, 1] = torch.nan
    flow.requires_grad_()
    assert torch.autograd.gradcheck(lambda u: endpoint_error(u, truth, 1.5), (flow,))
    (gradient,) = torch.autograd.grad(endpoint_error(flow, truth), flow)
    assert not gradient[0, :, 1].any() and gradient[0, :, 0].all()
    endpoint_error(flow, flow.detach()).backward()
    assert not flow.grad.any()


def test_a_sample_whose_field_nobody_knows_adds_nothing() -> None:
    flow = torch.zeros(2, 2, 4, 5)
    truth = torch.full_like(flow, torch.nan)
    assert float(endpoint_error(flow, truth)) == 0
    truth[0, 0], truth[0, 1] = 3, 4
    assert float(endpoint_error(flow, truth)) == pytest.approx(2.5)


def test_the_term_counts_where_the_fixed_image_is_labelled_else_in_its_mask() -> None:
    flow = torch.zeros(1, 2, 4, 5)
    truth = torch.zeros_like(flow)
    truth[:, 0, :2] = 1
    labels, mask = (torch.zeros(1, 1, 4, 5, dtype=torch.uint8) for _ in range(2))
    labels[:, :, :2], mask[:, :, 1:3] = 7, 1
    outputs, batch = {"displacement": flow}, {"flow": truth, "spacing": torch.tensor([[2.0, 1.0]])}
    assert float(EndPointError()(outputs, batch)) == pytest.approx(1.0)
    assert float(EndPointError()(outputs, {**batch, "fixed_mask": mask})) == pytest.approx(1.0)
    assert float(EndPointError()(outputs, {**batch, "fixed_mask": mask, "fixed_labels": labels})) == pytest.approx(2.0)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="a truth of its shape"):
        endpoint_error(torch.zeros(1, 2, 4, 5), torch.zeros(1, 2, 4, 6))
    with pytest.raises(ValueError, match="as it is"):
        EndPointError(level=1)
    with pytest.raises(ValueError, match="needs 'flow'"):
        EndPointError()({"displacement": torch.zeros(1, 2, 4, 5)}, {})


def test_a_field_that_is_lost_has_no_small_error() -> None:
    truth = torch.ones(1, 2, 4, 5)
    assert endpoint_error(torch.full_like(truth, float("nan")), truth).isnan()
