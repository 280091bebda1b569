"""Laws of the U-Net that compares features."""

from itertools import product

import pytest
import torch

from regnet.models import CorrelationUNet
from regnet.models.networks.correlation import correlation


@pytest.mark.parametrize("shape", [(1,), (33, 45), (17, 19, 23)])
@pytest.mark.parametrize("decoder", [(8, 5), (8,)])
def test_features_of_any_size_lie_at_the_networks_stride(shape, decoder):
    network = CorrelationUNet(len(shape), in_channels=4, encoder=(4, 8, 8), decoder=decoder, final=(6,))
    expected = [-(-n // network.stride) for n in shape]
    assert network(*torch.rand(2, 2, 2, *shape)).shape == (2, 6, *expected)


@pytest.mark.parametrize("shape", [(7,), (6, 9), (5, 7, 6)])
def test_a_shifted_image_is_most_alike_at_its_shift(shape):
    fixed = torch.randn(1, 64, *shape, generator=torch.Generator().manual_seed(0))
    axes = list(range(2, 2 + len(shape)))
    inside = (..., *[slice(1, -1)] * len(shape))
    for number, shift in enumerate(product((-1, 0, 1), repeat=len(shape))):
        scores = correlation(fixed.roll(shift, axes), fixed)
        assert scores.shape == (1, 3 ** len(shape), *shape)
        assert (scores[inside].argmax(1) == number).all()
        torch.testing.assert_close(
            scores[inside][:, number], torch.ones_like(scores[inside][:, number]), rtol=1e-4, atol=0
        )


def test_gain_and_offset_of_the_features_do_not_matter_and_what_is_outside_counts_nothing():
    moving, fixed = torch.randn(2, 2, 8, 5, 6, generator=torch.Generator().manual_seed(1)).double()
    scores = correlation(moving, fixed)
    torch.testing.assert_close(correlation(3 * moving + 5, fixed), scores, rtol=0, atol=1e-4)
    assert scores.abs().max() <= 1
    assert not scores[:, 0, 0].any() and not scores[:, 2, :, -1].any()  # (-1, -1) and (-1, 1)
    assert not correlation(torch.ones_like(moving), fixed).any()
