"""Laws of the U-Net."""

import pytest
import torch

from regnet.models import UNet
from regnet.models.networks.blocks import Merge

SHAPES = [(1,), (37,), (1, 1), (16, 9), (33, 45), (1, 2, 3), (17, 19, 23), (37, 45, 23), (15, 16, 17)]


@pytest.mark.parametrize("shape", SHAPES)
def test_features_of_any_size_lie_on_the_images_grid(shape):
    network = UNet(len(shape), encoder=(4, 8, 8, 8), decoder=(8, 8, 5))
    images = torch.rand(2, 1, *shape), torch.rand(2, 1, *shape)
    assert network(*images).shape == (2, 5, *shape)
    assert network.stride == 1 and network.out_channels == 5


@pytest.mark.parametrize("levels", [0, 1, 2, 3])
def test_each_level_left_out_of_the_decoder_doubles_the_stride(levels):
    network = UNet(3, encoder=(4, 6, 8, 10), decoder=(7,) * levels)
    stride = 2 ** (3 - levels)
    assert network.stride == stride
    shape = (9, 16, 21)
    features = network(torch.rand(1, 1, *shape), torch.rand(1, 1, *shape))
    assert features.shape == (1, network.out_channels, *(-(-size // stride) for size in shape))


def test_features_move_with_the_images_by_multiples_of_the_coarsest_stride():
    network = UNet(2, encoder=(4, 8, 8), decoder=(8, 4)).double()
    images = torch.zeros(2, 1, 1, 72, 56, dtype=torch.float64)
    images[..., 24:40, 16:32] = torch.rand(2, 1, 1, 16, 16, dtype=torch.float64)
    moved = images.roll((8, 4), dims=(-2, -1))
    window = (..., slice(12, 52), slice(8, 40))
    shifted = (..., slice(20, 60), slice(12, 44))
    torch.testing.assert_close(network(*moved)[shifted], network(*images)[window], rtol=0, atol=1e-12)


def test_what_lies_beyond_the_end_of_an_axis_does_not_matter():
    # Cutting voxels of zero off the far end changes nothing far from it: padding does not shift.
    network = UNet(2, encoder=(4, 8, 8), decoder=(8, 4))
    images = torch.rand(2, 1, 1, 41, 38)
    images[..., 20:, :] = 0
    whole = network(*images)
    for size in (40, 39, 37):
        torch.testing.assert_close(network(*images[..., :size, :])[..., :16, :], whole[..., :16, :], rtol=0, atol=1e-5)


def test_several_channels_an_image():
    network = UNet(2, in_channels=6, encoder=(4, 8), decoder=(4,))
    assert network(torch.rand(2, 3, 7, 9), torch.rand(2, 3, 7, 9)).shape == (2, 4, 7, 9)


def test_mistakes_are_told():
    with pytest.raises(ValueError, match="ndim must be 1, 2 or 3, got 4"):
        UNet(4)
    with pytest.raises(ValueError, match="encoder of 2 levels takes a decoder of at most 1, got 2"):
        UNet(2, encoder=(4, 8), decoder=(8, 8))
    network = UNet(2, encoder=(4, 8), decoder=(4,))
    with pytest.raises(ValueError, match="one grid"):
        network(torch.rand(1, 1, 8, 8), torch.rand(1, 1, 8, 9))
    with pytest.raises(ValueError, match="set in_channels"):
        network(torch.rand(1, 2, 8, 8), torch.rand(1, 2, 8, 8))


@pytest.mark.parametrize("shape", [(14,), (13, 10), (9, 8, 11)])
def test_layout_and_checkpointing_change_neither_features_nor_gradients(shape):
    images = torch.rand(2, 2, 1, *shape)
    results = []
    for settings in ({}, {"channels_last": False}, {"checkpointing": True}):
        torch.manual_seed(0)
        network = UNet(len(shape), encoder=(4, 8, 8), decoder=(8, 4), final=(6, 5), **settings)
        features = network(*images)
        features.square().sum().backward()
        results.append([features, *(parameter.grad for parameter in network.parameters())])
    for others in results[1:]:
        for first, other in zip(results[0], others, strict=True):
            torch.testing.assert_close(first, other, rtol=1e-4, atol=1e-4)


def test_two_convolutions_are_the_one_of_the_stacked_features():
    merge = Merge(2, 3, 4, 5)
    coarse, fine = torch.randn(2, 3, 5, 4), torch.randn(2, 4, 9, 8)
    stacked = torch.cat([coarse.repeat_interleave(2, 2).repeat_interleave(2, 3)[:, :, :9, :8], fine], dim=1)
    expected = torch.nn.functional.leaky_relu(merge.layer(stacked), 0.2)
    torch.testing.assert_close(merge(coarse, fine), expected, rtol=0, atol=1e-5)


def test_further_convolutions_stay_at_the_resolution_of_the_decoder():
    network = UNet(2, encoder=(4, 8, 8), decoder=(8,), final=(7, 6))
    assert network.stride == 2 and network.out_channels == 6
    assert network(*torch.rand(2, 1, 1, 9, 14)).shape == (1, 6, 5, 7)
