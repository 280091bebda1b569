"""Laws of the U-Net of two streams."""

import pytest
import torch

from regnet.models import DualStreamUNet


@pytest.mark.parametrize("shape", [(1,), (33, 45), (17, 19, 23)])
def test_features_of_any_size_lie_on_the_images_grid(shape):
    network = DualStreamUNet(len(shape), in_channels=4, encoder=(4, 8, 8), decoder=(8, 5), final=(6,))
    assert network(*torch.rand(2, 2, 2, *shape)).shape == (2, 6, *shape)


def test_an_image_has_the_same_features_whatever_the_other_and_whichever_its_place():
    network = DualStreamUNet(2, encoder=(4, 8), decoder=(5,))
    one, other, third = torch.rand(3, 2, 1, 18, 13)
    for level, (first, second) in enumerate(zip(network.encode(one, other), network.encode(third, one), strict=True)):
        width = (4, 8)[level]
        torch.testing.assert_close(first[:, :width], second[:, width:])
