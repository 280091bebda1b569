"""Laws of the registration model."""

import pytest
import torch
from torch import nn

from regnet import ops
from regnet.models import DisplacementHead, Registration, UNet, VelocityHead


def _model(ndim=3, channels=1, head=VelocityHead):
    torch.manual_seed(0)
    network = UNet(ndim, in_channels=2 * channels, encoder=(4, 8, 8, 8), decoder=(8, 8, 4))
    return Registration(network, head(ndim, 4))


class Shift(nn.Module):
    """A network whose field is a constant."""

    def __init__(self, *by):
        super().__init__()
        self.by = by

    def forward(self, moving, fixed):
        return torch.tensor(self.by).view(1, -1, *[1] * len(self.by)).expand(len(fixed), -1, *fixed.shape[2:])


@pytest.mark.parametrize("head", [VelocityHead, DisplacementHead])
@pytest.mark.parametrize("shape", [(37, 45, 23), (46, 55, 46), (15, 17), (1, 5)])
def test_any_image_size_works(shape, head):
    model = _model(len(shape), head=head)
    outputs = model(torch.rand(2, 1, *shape), torch.rand(2, 1, *shape))
    assert outputs["displacement"].shape == (2, len(shape), *shape)
    assert outputs["moved"].shape == outputs["moved_view"].shape == (2, 1, *shape)


def test_zero_weights_in_the_last_layer_leave_the_image_as_it_is():
    model = _model()
    for parameter in model.head.parameters():
        parameter.data.zero_()
    moving = torch.rand(1, 1, 17, 19, 23)
    outputs = model(moving, torch.rand_like(moving))
    assert (outputs["displacement"] == 0).all()
    torch.testing.assert_close(outputs["moved"], moving)
    torch.testing.assert_close(outputs["moved_view"], torch.ones_like(moving))


def test_weights_of_one_size_serve_another():
    model = _model()
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    model(torch.rand(1, 1, 32, 32, 32), torch.rand(1, 1, 32, 32, 32))
    assert {name: tuple(value.shape) for name, value in model.state_dict().items()} == shapes
    other = _model()
    other.load_state_dict(model.state_dict())
    assert other(torch.rand(1, 1, 32, 40, 24), torch.rand(1, 1, 32, 40, 24))["moved"].shape[2:] == (32, 40, 24)
    assert not list(model.buffers())


def test_a_bare_network_gives_the_displacement_itself():
    moving = torch.rand(2, 3, 8, 9)
    outputs = Registration(Shift(2.0, -1.0))(moving, torch.rand_like(moving))
    torch.testing.assert_close(outputs["moved"][:, :, :6, 1:], moving[:, :, 2:, :-1])
    assert (outputs["moved"][:, :, 6:] == 0).all() and (outputs["moved"][:, :, :, 0] == 0).all()


def test_the_view_moves_with_the_image():
    moving, view = torch.rand(1, 1, 8, 9), torch.ones(1, 1, 8, 9)
    view[:, :, :3] = 0
    moved = Registration(Shift(2.0, 0.0))(moving, moving, view)["moved_view"]
    expected = torch.zeros(1, 1, 8, 9)
    expected[:, :, 1:6] = 1
    torch.testing.assert_close(moved, expected)


def test_the_field_is_float32_under_autocast():
    model = _model(2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs = model(torch.rand(1, 1, 16, 12), torch.rand(1, 1, 16, 12))
    assert outputs["displacement"].dtype == torch.float32


def test_features_without_a_head_are_refused():
    with pytest.raises(ValueError, match="a network that returns features needs a head"):
        Registration(UNet(2, encoder=(4, 8), decoder=(4,)))(torch.rand(1, 1, 8, 8), torch.rand(1, 1, 8, 8))


def test_a_moving_image_on_its_own_voxels_is_interpolated_once_and_differentiated_through():
    # Voxel (i, j) of the common grid is voxel (2 j, 9 - i / 2) of the image's own.
    draw = torch.Generator().manual_seed(1)
    own = torch.rand(1, 1, 20, 10, generator=draw)
    source = torch.cat([own, torch.ones_like(own)], dim=1)
    matrix = torch.tensor([[[0.0, 2.0, 0.0], [-0.5, 0.0, 9.0]]])
    model = _model(2)
    with torch.no_grad():
        model.head.field.convolution.bias.copy_(torch.tensor([2.0, 1.0]))
    common, fixed = torch.rand(1, 1, 12, 8, generator=draw), torch.rand(1, 1, 12, 8, generator=draw)
    outputs = model(common, fixed, source=source, matrix=matrix)
    torch.testing.assert_close(
        outputs["moved"],
        ops.warp(own, outputs["displacement"], bound="replicate", extrapolate="edge", matrix=matrix),
    )
    # Where p + u = (2 k, j) is whole, own voxels are met: moved(p) = own(2 j, 9 - k).
    still = Registration(Shift(2.0, 1.0))(common, fixed, source=source, matrix=matrix)
    assert float(still["moved"][0, 0, 4, 3] - own[0, 0, 8, 6]) == pytest.approx(0, abs=1e-6)
    outputs["moved"].sum().backward()
    assert float(model.head.field.convolution.weight.grad.abs().sum()) > 0


def test_coordinates_are_not_rounded_under_autocast():
    # MONAI 1.6.1 makes its grid in the field's type: up to 0.67 voxels of error on an axis of 192 in bfloat16.
    ramp = torch.arange(192.0).view(1, 1, 192, 1).expand(1, 1, 192, 5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        moved = Registration(Shift(0.3, 0.0))(ramp, ramp)["moved"]
    torch.testing.assert_close(moved[:, :, :191], ramp[:, :, :191] + 0.3, rtol=0, atol=1e-4)
