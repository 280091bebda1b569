"""Laws of the velocity head."""

import pytest
import torch

from regnet import ops
from regnet.models import VelocityHead


def _smooth(head):
    """Make the head copy its first D feature channels: features are then the velocity on their own grid."""
    ndim = head.field.convolution.weight.shape[0]
    weight = torch.zeros_like(head.field.convolution.weight)
    for axis in range(ndim):
        weight[(axis, axis, *(1,) * ndim)] = 1
    head.field.convolution.weight.data = weight
    return head


@pytest.mark.parametrize("ndim", [2, 3])
def test_the_displacement_is_the_integral_of_the_velocity(ndim):
    head = _smooth(VelocityHead(ndim, ndim, steps=6))
    shape = (12, 9, 7)[:ndim]
    features = ops.resize(torch.randn(2, ndim, *(3,) * ndim), shape=shape)
    outputs = head(features, shape)
    torch.testing.assert_close(outputs["velocity"], features)
    torch.testing.assert_close(outputs["displacement"], ops.integrate(features, steps=6, bound="replicate"))


def test_half_resolution_gives_the_same_map():
    # One smooth bump, in voxels of the fine grid, sampled on both grids.
    shape = (48, 40)
    fine = torch.meshgrid(*[torch.arange(float(n)) for n in shape], indexing="ij")
    coarse = torch.meshgrid(*[torch.arange(n // 2) * 2 + 0.5 for n in shape], indexing="ij")

    def velocity(x, y):
        bump = torch.exp(-((x - 24) ** 2 + (y - 20) ** 2) / 200)
        return torch.stack([3 * bump, -2 * bump])[None]

    at_full = _smooth(VelocityHead(2, 2))(velocity(*fine), shape)
    at_half = _smooth(VelocityHead(2, 2, stride=2))(velocity(*coarse) / 2, shape)
    assert at_full["displacement"].abs().max() > 2
    for name in ("displacement", "velocity"):
        error = (at_half[name] - at_full[name]).abs()
        assert error.mean() < 0.02 and error.max() < 0.1


def test_fresh_weights_give_the_identity():
    head = VelocityHead(3, 4)
    outputs = head(torch.randn(1, 4, 6, 7, 5), (6, 7, 5))
    assert outputs["displacement"].abs().max() < 1e-2


def test_gradients_reach_the_features():
    features = torch.randn(1, 3, 6, 5, requires_grad=True)
    VelocityHead(2, 3)(features, (6, 5))["displacement"].square().sum().backward()
    assert features.grad.abs().max() > 0
