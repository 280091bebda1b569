"""Laws of the probabilistic velocity head."""

import pytest
import torch

from regnet.models import ProbabilisticVelocityHead, Registration, Symmetric, UNet, VelocityHead


def _head(ndim, deviation, **arguments):
    """A head with one deviation everywhere, in voxels of its grid."""
    torch.manual_seed(0)
    head = ProbabilisticVelocityHead(ndim, 4, **arguments)
    with torch.no_grad():
        head.log_variance.convolution.weight.zero_()
        head.log_variance.convolution.bias.fill_(2 * torch.tensor(deviation).log())
    return head


@pytest.mark.parametrize("ndim", [2, 3])
def test_undrawn_it_is_the_velocity_head_of_the_mean(ndim):
    head = _head(ndim, 0.5, stride=2, inverse=True)
    plain = VelocityHead(ndim, 4, stride=2, inverse=True)
    plain.load_state_dict({key: value for key, value in head.state_dict().items() if key.startswith("field")})
    shape = (13, 9, 7)[:ndim]
    features = 1e4 * torch.randn(2, 4, *(-(-n // 2) for n in shape))
    outputs = head(features, shape)
    for name, field in plain(features, shape).items():
        torch.testing.assert_close(outputs[name], field)
    assert outputs["displacement"].abs().max() > 0.1
    assert outputs["mean"].shape == outputs["log_variance"].shape == (2, ndim, *features.shape[2:])


def test_a_draw_has_the_mean_and_the_deviation_that_the_head_says():
    head = _head(2, 0.3)
    outputs = head(1e5 * torch.randn(2, 4, 60, 50), (60, 50), torch.tensor([3, 4]))
    noise = (outputs["velocity"] - outputs["mean"]) / 0.3
    assert noise.mean().abs() < 0.03 and abs(noise.std() - 1) < 0.02
    assert (noise[0] * noise[1]).mean().abs() < 0.05  # samples have nothing to do with each other
    outputs["velocity"].square().sum().backward()
    assert all(parameter.grad.abs().max() > 0 for parameter in head.parameters())


def test_a_draw_is_a_function_of_its_number_alone():
    head, features = _head(3, 1.0), torch.randn(3, 4, 5, 6, 4)
    drawn = head(features, (5, 6, 4), torch.tensor([7, 2**62 - 1, 7]))["velocity"]
    state = torch.get_rng_state()
    alone = head(features[1:2], (5, 6, 4), torch.tensor([2**62 - 1]))["velocity"]
    torch.testing.assert_close(alone, drawn[1:2])
    torch.testing.assert_close(drawn[0] - head.field(features)[0], drawn[2] - head.field(features)[2])
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("ndim", [2, 3])
def test_the_spread_is_the_deviation_of_draws(ndim):
    # Without squarings the displacement is the velocity: its deviation is the head's, known to 1 / sqrt(2 * 39) of it.
    model = Registration(UNet(ndim, 2, (4, 4), (4,)), _head(ndim, 0.4, steps=0))
    shape = (14, 12, 10)[:ndim]
    moving, fixed = torch.rand(2, 2, 1, *shape)
    with torch.no_grad():
        spread = model.spread(moving, fixed, range(40))
        fields = torch.stack([model(moving, fixed, draw=torch.tensor([k, k]))["displacement"] for k in range(40)])
    torch.testing.assert_close(spread, fields.std(0), atol=1e-5, rtol=1e-4)
    assert abs(spread.square().mean().sqrt() - 0.4) < 0.02
    assert spread.shape == (2, ndim, *shape)


def test_what_cannot_draw_says_so():
    network, images = UNet(2, 2, (4, 4), (4,)), torch.rand(2, 1, 1, 8, 8)
    with pytest.raises(ValueError, match="only a model with a probabilistic head"):
        Registration(network, VelocityHead(2, 4)).spread(*images, range(3))
    with pytest.raises(ValueError, match="two draws at least, got 1"):
        Registration(network, _head(2, 1.0)).spread(*images, [1])
    with pytest.raises(ValueError, match="a symmetric registration cannot draw"):
        Symmetric(network, _head(2, 1.0, inverse=True))
