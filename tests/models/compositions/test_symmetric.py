"""Laws of the symmetric registration."""

import pytest
import torch

from regnet import ops
from regnet.models import AffineHead, DisplacementHead, SplineVelocityHead, Symmetric, UNet, VelocityHead
from regnet.models.heads.field import FieldLayer

HEADS = [VelocityHead, SplineVelocityHead, AffineHead]


def model(head, ndim):
    torch.manual_seed(0)
    made = Symmetric(UNet(ndim, encoder=(4, 8, 8), decoder=(6,)), head(ndim, 6, stride=2, inverse=True))
    for layer in made.modules():
        if isinstance(layer, FieldLayer):
            torch.nn.init.normal_(layer.convolution.weight, std=0.03)
    return made


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("shape", [(21, 26), (9, 12, 14)])
def test_exchanging_the_images_exchanges_the_map_and_its_inverse(head, shape):
    moving, fixed = torch.rand(2, 2, 1, *shape)
    with torch.no_grad():
        made = model(head, len(shape))
        there, back = made(moving, fixed), made(fixed, moving)
    assert there["displacement"].abs().max() > 0.02
    torch.testing.assert_close(there["displacement"], back["inverse_displacement"], rtol=0, atol=1e-5)
    torch.testing.assert_close(there["inverse_displacement"], back["displacement"], rtol=0, atol=1e-5)


@pytest.mark.parametrize("head", HEADS)
def test_the_two_maps_undo_each_other(head):
    smooth = ops.resize(torch.rand(2, 1, 5, 4), shape=(40, 32), order=3)
    with torch.no_grad():
        outputs = model(head, 2)(smooth[:1], smooth[1:])
    around = ops.compose(outputs["displacement"], outputs["inverse_displacement"], bound="replicate")
    assert around[..., 4:-4, 4:-4].abs().mean() < 0.02 * outputs["displacement"].abs().max()


def test_an_image_is_registered_to_itself_by_nothing():
    image = torch.rand(1, 1, 17, 14)
    assert (model(VelocityHead, 2)(image, image)["displacement"] == 0).all()


def test_heads_without_an_inverse_are_refused():
    for head in (DisplacementHead(2, 4), VelocityHead(2, 4)):
        with pytest.raises(ValueError, match="needs a head that gives the inverse"):
            Symmetric(UNet(2, encoder=(4, 8), decoder=(4,)), head)
