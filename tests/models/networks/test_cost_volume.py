"""Laws of the network that compares features."""

from itertools import product

import pytest
import torch

from regnet.models import CostVolumeNet, Registration, VelocityHead
from regnet.models.networks.cost_volume import _Correlation, correlation, local_mean


@pytest.mark.parametrize("shape", [(1,), (33, 45), (17, 19, 23), (2, 3, 1)])
def test_the_velocity_of_any_size_lies_on_the_grid_of_stride_two(shape):
    network = CostVolumeNet(len(shape), in_channels=4, encoder=(4, 8, 6), hidden=5)
    assert network(*torch.rand(2, 2, 2, *shape)).shape == (2, len(shape), *[-(-n // 2) for n in shape])
    model = Registration(network, VelocityHead(len(shape), None, stride=2))
    assert model(*torch.rand(2, 2, 2, *shape))["displacement"].shape == (2, len(shape), *shape)


@pytest.mark.parametrize("shape", [(7,), (6, 9), (5, 7, 6)])
def test_a_shifted_image_is_most_alike_at_its_shift(shape):
    fixed = torch.randn(1, 64, *shape, generator=torch.Generator().manual_seed(0))
    axes = list(range(2, 2 + len(shape)))
    inside = (slice(None), slice(None), *[slice(1, -1)] * len(shape))
    for number, shift in enumerate(product((-1, 0, 1), repeat=len(shape))):
        scores = correlation(fixed.roll(shift, axes), fixed)
        assert scores.shape == (1, 3 ** len(shape), *shape)
        best = scores[inside]
        assert (best.argmax(1) == number).all()
        torch.testing.assert_close(best[:, number], torch.ones_like(best[:, number]), rtol=1e-4, atol=0)


def test_gain_and_offset_of_the_features_do_not_matter_and_what_is_outside_counts_nothing():
    moving, fixed = torch.randn(2, 2, 8, 5, 6, generator=torch.Generator().manual_seed(1))
    scores = correlation(moving, fixed)
    torch.testing.assert_close(correlation(3 * moving + 5, fixed), scores, rtol=0, atol=1e-4)
    assert scores.abs().max() <= 1
    assert not scores[:, 0, 0].any() and not scores[:, 2, :, -1].any()  # (-1, -1) and (-1, 1)
    assert not correlation(torch.ones_like(moving), fixed).any()


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 2)])
def test_the_gradient_of_the_correlation_is_exact(shape):
    moving, fixed = torch.randn(2, 1, 2, *shape, generator=torch.Generator().manual_seed(4)).double().requires_grad_()
    assert torch.autograd.gradcheck(_Correlation.apply, (moving, fixed))


@pytest.mark.parametrize("shape", [(20, 18), (12, 14, 10)])
def test_an_image_upside_down_has_the_features_that_it_had(shape):
    network = CostVolumeNet(len(shape), encoder=(4, 8))
    image = torch.rand(1, 1, *shape, generator=torch.Generator().manual_seed(2))
    for one, other in zip(network.describe(image), network.describe(1 - image), strict=True):
        inside = (slice(None), slice(None), *[slice(2, -2)] * len(shape))
        torch.testing.assert_close(one[inside], other[inside], rtol=1e-3, atol=1e-4)


def test_untrained_it_moves_towards_where_the_image_was_shifted_to():
    image = torch.rand(1, 1, 40, 44, generator=torch.Generator().manual_seed(3))
    image = local_mean(image, 3)
    torch.manual_seed(0)
    velocity = CostVolumeNet(2, encoder=(16, 24))(image.roll(2, 2), image)
    inner = velocity[:, :, 4:-4, 4:-4]
    assert inner[:, 0].mean() > 0.1 and inner[:, 1].abs().mean() < 0.2


def test_a_local_mean_is_over_what_is_on_the_grid():
    image = torch.arange(5.0).view(1, 1, 5)
    assert local_mean(image).flatten().tolist() == pytest.approx([0.5, 1, 2, 3, 3.5])


def test_what_does_not_fit_is_refused():
    network = CostVolumeNet(2, encoder=(4, 8))
    with pytest.raises(ValueError, match="on one grid"):
        network(torch.rand(1, 1, 8, 8), torch.rand(1, 1, 8, 9))
    with pytest.raises(ValueError, match="two levels"):
        CostVolumeNet(2, encoder=(4,))
