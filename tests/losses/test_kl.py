"""Laws of the divergence from the smooth prior."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from regnet.losses import kl_divergence
from tests.losses.cases import field


def _laplacian(shape: tuple[int, ...]) -> Tensor:
    """Degree minus adjacency of the grid, pair by pair."""
    index = torch.arange(math.prod(shape)).view(shape)
    matrix = torch.zeros(index.numel(), index.numel(), dtype=torch.float64)
    for place in itertools.product(*map(range, shape)):
        for axis, n in enumerate(shape):
            if place[axis] + 1 < n:
                neighbour = list(place)
                neighbour[axis] += 1
                p, q = int(index[place]), int(index[tuple(neighbour)])
                matrix[p, p] += 1
                matrix[q, q] += 1
                matrix[p, q] -= 1
                matrix[q, p] -= 1
    return matrix


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 3)])
def test_it_is_gauss_s_divergence_up_to_a_constant(shape: tuple[int, ...]) -> None:
    # KL = 1/2 [tr(P S) + m' P m - log det S + const], P = precision L; const does not move as mean and variance do
    full = (2, len(shape), *shape)
    precision = 3.0 * _laplacian(shape)
    values, expected = [], []
    for seed in range(2):
        generator = torch.Generator().manual_seed(seed)
        mean, log_variance = torch.randn(2, *full, generator=generator, dtype=torch.float64)
        values.append(float(kl_divergence(mean, log_variance, 3.0)))
        m, v = mean.flatten(2), log_variance.flatten(2)
        terms = torch.einsum("ndp,pq,ndq->", m, precision, m) + (precision.diagonal() * v.exp()).sum() - v.sum()
        expected.append(float(terms) / 2 / (2 * math.prod(shape)))
    assert values == pytest.approx(expected)


def test_each_voxel_alone_is_best_at_the_variance_of_the_prior() -> None:
    # the derivative in log v is (precision degree v - 1) / 2 V
    log_variance = torch.zeros(1, 2, 5, 6, dtype=torch.float64)
    degree = _laplacian((5, 6)).diagonal().view(5, 6)
    best = (log_variance - (2.5 * degree).log()).requires_grad_()
    (gradient,) = torch.autograd.grad(kl_divergence(torch.zeros_like(best), best, 2.5), best)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), atol=1e-12, rtol=0)


@pytest.mark.parametrize("shape", [(2, 2, 4, 5), (1, 3, 3, 4, 2)])
def test_it_has_its_exact_gradient(shape: tuple[int, ...]) -> None:
    mean, log_variance = field(shape).requires_grad_(), field(shape).flip(2).requires_grad_()
    assert torch.autograd.gradcheck(kl_divergence, (mean, log_variance), eps=1e-6, atol=1e-8, rtol=1e-6)


def test_what_does_not_fit_is_refused() -> None:
    flow = torch.zeros(1, 2, 4, 5)
    with pytest.raises(ValueError, match="of one shape"):
        kl_divergence(flow, flow[..., :4])
    with pytest.raises(ValueError, match="precision must be positive"):
        kl_divergence(flow, flow, 0.0)
