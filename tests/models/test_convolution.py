"""The convolution of the models is torch's, on whatever way it is computed."""

import pytest
import torch
from torch.nn import functional as F

from regnet.models import convolution as module
from regnet.models.convolution import convolution, convolve


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("shape", [(6, 5, 4), (5, 7, 3), (2, 1, 1), (1, 4, 4), (3, 3, 9), (4, 1, 6)])
def test_an_image_in_two_slabs_gives_what_it_gives_whole(shape, stride):
    features, weight, bias = torch.randn(1, 2, *shape), torch.randn(3, 2, 3, 3, 3), torch.randn(3)
    assert module._is_small(features)
    results = []
    for function in (lambda *a: convolve(*a, stride=stride), lambda *a: F.conv3d(*a, stride, 1)):
        leaves = [each.clone().requires_grad_() for each in (features, weight, bias)]
        out = function(*leaves)
        out.sin().sum().backward()
        results.append([out, *(leaf.grad for leaf in leaves)])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("ndim", "kernel"), [(1, 3), (2, 3), (3, 1), (3, 5), (3, 3)])
def test_a_layer_keeps_the_size_in_any_dimension_and_type(ndim, kernel):
    layer = convolution(ndim, 2, 3, kernel=kernel)
    kind = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)[ndim - 1]
    assert isinstance(layer, kind) and set(layer.state_dict()) == {"weight", "bias"}
    for dtype, size in ((torch.float32, 1), (torch.float64, 1), (torch.float32, 2)):
        features = torch.randn(size, 2, 5, 4, 6, dtype=dtype)[(..., *[0] * (3 - ndim))]
        out = layer.to(dtype)(features)
        conv = (F.conv1d, F.conv2d, F.conv3d)[ndim - 1]
        torch.testing.assert_close(out, conv(features, layer.weight, layer.bias, padding=kernel // 2))
        assert out.shape == (size, 3, *features.shape[2:])


def test_what_is_large_autocast_or_not_alone_is_left_to_torch():
    assert not module._is_small(torch.zeros(1, 21, 32, 32, 2))
    assert not module._is_small(torch.zeros(2, 1, 4, 4, 4))
    assert not module._is_small(torch.zeros(1, 1, 4, 4, 4, dtype=torch.float64))
    with torch.autocast("cpu", torch.bfloat16):
        assert not module._is_small(torch.zeros(1, 1, 4, 4, 4))
