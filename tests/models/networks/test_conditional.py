"""Laws of the U-Net that is told the regularisation weight."""

import pytest
import torch

from regnet.models import Cascade, ConditionalUNet, DisplacementHead, Pyramid, Registration, UNet


def _network(ndim=2, **arguments):
    torch.manual_seed(0)
    network = ConditionalUNet(ndim, 2, (4, 6, 8), (6, 5), **arguments)
    with torch.no_grad():
        for layer in network.modulations:
            layer.weight.normal_(std=0.2)
    return network


def test_at_first_it_is_the_plain_network_for_every_weight():
    conditional = ConditionalUNet(3, 2, (4, 6, 8), (6,), final=(5,))
    plain = UNet(3, 2, (4, 6, 8), (6,), final=(5,))
    plain.load_state_dict(conditional.state_dict(), strict=False)
    images = torch.rand(2, 2, 1, 9, 8, 7)
    torch.testing.assert_close(conditional(*images, torch.tensor([0.1, 0.9])), plain(*images))


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_every_sample_of_a_batch_has_its_own_weight(ndim):
    network, images = _network(ndim), torch.rand(2, 3, 1, *(13, 10, 6)[:ndim])
    weights = torch.tensor([0.0, 0.5, 1.0])
    together = network(*images, weights)
    alone = [network(*images[:, n : n + 1], weights[n : n + 1]) for n in range(3)]
    torch.testing.assert_close(together, torch.cat(alone), atol=1e-5, rtol=1e-4)
    assert (together - network(*images, weights.flip(0)))[0].abs().max() > 1e-2


def test_untold_it_takes_the_middle_of_its_range():
    network, images = _network(regularity=(0.5, 4.5)), torch.rand(2, 2, 1, 12, 9)
    torch.testing.assert_close(network(*images), network(*images, torch.tensor([2.5, 2.5])))


def test_the_weight_reaches_every_parameter_and_every_stage():
    for composition in (lambda m: m, lambda m: Cascade([m], (2, 1)), lambda m: Pyramid([m], (2, 1))):
        model = composition(Registration(_network(), DisplacementHead(2, 5)))
        assert model.regularity == (0.0, 1.0)
        images = torch.rand(2, 1, 1, 16, 12)
        outputs = model(*images, regularity=torch.tensor([0.8]))
        assert outputs["regularity"] == 0.8
        outputs["displacement"].square().sum().backward()
        assert all(parameter.grad.abs().max() > 0 for parameter in model.parameters())


@pytest.mark.parametrize("regularity", [(1.0, 1.0), (-1.0, 1.0), (0.0, 1.0, 2.0), (float("nan"), 1.0)])
def test_a_range_that_is_none_is_refused(regularity):
    with pytest.raises(ValueError, match="two weights from 0 upwards"):
        ConditionalUNet(2, regularity=regularity)
