"""Laws of the U-Net with large kernels."""

import pytest
import torch

from regnet.models import LargeKernelUNet
from regnet.models.networks.large_kernel import LargeKernelBlock


@pytest.mark.parametrize("shape", [(11,), (9, 12), (7, 8, 6)])
def test_one_convolution_is_the_sum_of_the_branches(shape):
    block = LargeKernelBlock(len(shape), 3)
    features = torch.randn(2, 3, *shape)
    apart = features + block.wide(features) + block.middle(features) + block.narrow(features)
    torch.testing.assert_close(block(features), torch.nn.functional.leaky_relu(apart, 0.2), rtol=0, atol=1e-5)


def test_every_branch_learns():
    network = LargeKernelUNet(2, encoder=(4, 8), decoder=(4,))
    network(*torch.rand(2, 2, 1, 13, 10)).square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.abs().max() > 0 for parameter in network.parameters())


@pytest.mark.parametrize("shape", [(1,), (33, 45), (17, 19, 23)])
def test_features_of_any_size_lie_on_the_images_grid(shape):
    network = LargeKernelUNet(len(shape), encoder=(4, 8, 8), decoder=(8, 5))
    assert network(*torch.rand(2, 2, 1, *shape)).shape == (2, 5, *shape)
