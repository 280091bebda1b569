"""Laws of the spline head."""

import pytest
import torch

from regnet import ops
from regnet.models import SplineHead

from .copying import copying


def linear(matrix, shape, stride):
    """Features on the grid of nodes, ``k * stride``, that say ``matrix @ p`` in nodes."""
    coarse = [-(-n // stride) for n in shape]
    return torch.einsum("ij,nj...->ni...", matrix, ops.identity(coarse) * stride) / stride


@pytest.mark.parametrize("stride", [1, 2, 4])
@pytest.mark.parametrize("shape", [(41,), (37, 30), (17, 23, 20)])
def test_control_points_that_lie_on_a_linear_map_give_that_map(shape, stride):
    # Cubic splines reproduce linear functions; near the border the repeated points bend it.
    ndim = len(shape)
    head = SplineHead(ndim, ndim, stride)
    head = copying(head, head.control.field)
    matrix = 0.1 * torch.randn(ndim, ndim, generator=torch.Generator().manual_seed(0))
    outputs = head(linear(matrix, shape, stride), shape)
    expected = torch.einsum("ij,nj...->ni...", matrix, ops.identity(shape))
    inner = (..., *[slice(stride, -2 * stride) for _ in shape])
    torch.testing.assert_close(outputs["displacement"][inner], expected[inner], rtol=0, atol=1e-4)


@pytest.mark.parametrize("shape", [(1, 9), (16, 17), (5, 8, 13)])
def test_a_constant_is_a_constant_up_to_the_border(shape):
    head = SplineHead(len(shape), 3, 4)
    head.control.field.convolution.weight.data.zero_()
    head.control.field.convolution.bias.data = torch.arange(1.0, len(shape) + 1)
    shift = 4 * torch.arange(1.0, len(shape) + 1).view(1, -1, *[1] * len(shape))  # from nodes to voxels
    outputs = head(torch.rand(2, 3, *(-(-n // 4) for n in shape)), shape)
    torch.testing.assert_close(outputs["displacement"], shift.expand(2, -1, *shape))


def test_the_control_points_told_are_those_of_the_field():
    head = SplineHead(3, 5, 2)
    torch.nn.init.normal_(head.control.field.convolution.weight)
    shape = (9, 12, 7)
    outputs = head(torch.randn(2, 5, 5, 6, 4), shape)
    assert outputs["control"].shape == (2, 3, 8, 9, 7) and outputs["control_spacing"].tolist() == [2, 2, 2]
    field = ops.ffd(outputs["control"], shape, outputs["control_spacing"].tolist())
    torch.testing.assert_close(outputs["displacement"], field)


def test_features_of_another_stride_are_refused():
    with pytest.raises(ValueError, match="at stride 4: expected"):
        SplineHead(2, 3, 4)(torch.zeros(1, 3, 8, 8), (16, 16))
