"""Laws of the pyramid."""

import pytest
import torch
from torch import nn

from regnet import ops
from regnet.models import DisplacementHead, Pyramid, Registration, UNet


class Waves(nn.Module):
    """A smooth field of the same size in voxels of the images, whatever grid it is asked on; it remembers its input."""

    def __init__(self, factor, seed):
        super().__init__()
        self.factor = factor
        self.seed = seed

    def forward(self, moving, fixed):
        self.seen = moving
        nodes = 1.5 * torch.randn(1, 2, 3, 3, generator=torch.Generator().manual_seed(self.seed))
        return ops.resize(nodes, shape=fixed.shape[2:], order=3) / self.factor


def test_shares_add_up_to_one_velocity_whose_exponential_is_the_map():
    shape = (48, 40)
    levels = [Registration(Waves(factor, seed)) for seed, factor in enumerate((4, 2, 1))]
    outputs = Pyramid(levels, (4, 2, 1), steps=6, inverse=True)(*torch.rand(2, 1, 1, *shape))
    whole = sum(Waves(1, seed)(None, torch.rand(1, 1, *shape)) for seed in range(3))
    assert (outputs["velocity"] - whole)[..., 4:-4, 4:-4].abs().max() < 0.2  # the coarse grids cost so much
    integral = ops.integrate(outputs["velocity"], steps=6, bound="replicate")
    torch.testing.assert_close(outputs["displacement"], integral)
    back = ops.integrate(-outputs["velocity"], steps=6, bound="replicate")
    torch.testing.assert_close(outputs["inverse_displacement"], back)


def test_each_level_sees_the_moving_image_warped_by_the_velocity_so_far():
    shape = (24, 16)
    levels = [Registration(Waves(factor, seed)) for seed, factor in enumerate((2, 1))]
    moving, fixed = torch.rand(2, 1, 1, *shape)
    Pyramid(levels, (2, 1))(moving, fixed)
    coarse = levels[0].network(moving, fixed[..., ::2, ::2])
    flow = ops.integrate(ops.resize_flow(coarse, shape, bound="replicate"), bound="replicate")
    warped = ops.warp(moving, flow, bound="replicate", extrapolate="edge")
    torch.testing.assert_close(levels[1].network.seen, warped)


@pytest.mark.parametrize("factors", [(8, 4, 2), (4, 2, 1)])
@pytest.mark.parametrize("shape", [(17, 19, 23), (33, 30)])
def test_every_level_learns_at_any_size(shape, factors):
    ndim = len(shape)
    levels = [Registration(UNet(ndim, encoder=(4, 8), decoder=(4,)), DisplacementHead(ndim, 4)) for _ in factors]
    model = Pyramid(levels, factors, steps=4)
    for level in levels:
        torch.nn.init.normal_(level.head.field.convolution.weight, std=0.05)
    moving, fixed = torch.rand(2, 1, 1, *shape)
    outputs = model(moving, fixed)
    assert outputs["displacement"].shape == outputs["velocity"].shape == (1, ndim, *shape)
    (outputs["moved"] - fixed).square().mean().backward()
    assert all(parameter.grad.abs().max() > 0 for parameter in model.parameters())
