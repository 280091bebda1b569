"""Laws of the spline velocity head."""

import torch

from regnet import ops
from regnet.models import SplineVelocityHead


def head(inverse=False):
    torch.manual_seed(0)
    made = SplineVelocityHead(2, 3, 4, steps=6, inverse=inverse)
    torch.nn.init.normal_(made.control.field.convolution.weight, std=0.2)
    return made


def test_the_displacement_is_the_integral_of_the_spline():
    shape = (22, 33)
    outputs = head()(torch.randn(2, 3, 6, 9), shape)
    velocity = ops.ffd(outputs["control"], shape, 4)
    torch.testing.assert_close(outputs["velocity"], velocity)
    torch.testing.assert_close(outputs["displacement"], ops.integrate(velocity, steps=6, bound="replicate"))
    assert outputs["displacement"].abs().max() > 1


def test_the_inverse_undoes_the_displacement():
    outputs = head(inverse=True)(0.5 * torch.randn(1, 3, 10, 12), (40, 48))
    around = ops.compose(outputs["displacement"], outputs["inverse_displacement"], bound="replicate")
    assert outputs["displacement"].abs().max() > 1
    assert around[..., 8:-8, 8:-8].abs().mean() < 0.05


def test_gradients_reach_the_features():
    features = torch.randn(1, 3, 4, 5, requires_grad=True)
    head()(features, (16, 20))["displacement"].square().sum().backward()
    assert features.grad.abs().max() > 0
