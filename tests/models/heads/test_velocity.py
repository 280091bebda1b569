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


@pytest.mark.parametrize("stride", [1, 2])
def test_the_inverse_undoes_the_displacement(stride):
    shape = (40, 32)
    head = _smooth(VelocityHead(2, 2, stride=stride, inverse=True))
    coarse = [n // stride for n in shape]
    nodes = torch.randn(2, 2, 4, 3, generator=torch.Generator().manual_seed(0))
    features = ops.resize(2 / stride * nodes, shape=coarse, order=3)
    outputs = head(features, shape)
    back = ops.integrate(-outputs["velocity"], bound="replicate")
    around = ops.compose(outputs["displacement"], outputs["inverse_displacement"], bound="replicate")
    assert outputs["displacement"].abs().max() > 1
    assert around[..., 4:-4, 4:-4].abs().mean() < 0.04
    assert (outputs["inverse_displacement"] - back)[..., 4:-4, 4:-4].abs().mean() < 0.04


def test_half_resolution_is_scaled_the_right_way_round():
    # MONAI 1.6.1 scales by 2 on the way down and by 1/2 on the way up: a mean error of 0.86 voxels for such a field
    # of 48 voxels a side and 2.7 voxels on average, where 0.10 is what the coarser grid costs.
    shape = (48, 48, 48)
    nodes = torch.randn(1, 3, 4, 4, 4, generator=torch.Generator().manual_seed(0))
    velocity = ops.resize(nodes, shape=shape, order=3)
    velocity *= 2.7 / velocity.square().sum(1).sqrt().mean()
    full = ops.integrate(velocity, bound="replicate")
    half = _smooth(VelocityHead(3, 3, stride=2))(ops.resize(velocity, factor=0.5) / 2, shape)
    error = (half["displacement"] - full).square().sum(1).sqrt()
    assert 2 < full.square().sum(1).sqrt().mean() < 3.5
    assert error.mean() < 0.12
