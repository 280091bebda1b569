"""Every model finds a known field between two images, by itself: no model learns nothing (voxelmorph#408)."""

import math

import pytest
import torch

from regnet import ops
from regnet.models import build

from .configured import NAMES, configured

STEPS = 50


def bump(shape):
    """A smooth displacement of up to 2.5 and -2 voxels that ends before the border."""
    grid = ops.identity(shape)
    middle = torch.tensor([(n - 1) / 2 for n in shape]).view(1, -1, *[1] * len(shape))
    distance = ((grid - middle) / (0.3 * middle)).square().sum(1, keepdim=True)
    size = torch.tensor([2.5, -2.0, 1.5][: len(shape)]).view(1, -1, *[1] * len(shape))
    return size * torch.exp(-distance / 4)


def turn(shape, angle=0.08):
    """Rotation by ``angle`` around the middle in the first two axes, and a shift by 1 and -0.5 voxels."""
    x, y = ops.identity(shape)[0, :2]
    x, y = x - (shape[0] - 1) / 2, y - (shape[1] - 1) / 2
    flow = torch.zeros(1, len(shape), *shape)
    flow[0, 0] = x * (math.cos(angle) - 1) - y * math.sin(angle) + 1.0
    flow[0, 1] = x * math.sin(angle) + y * (math.cos(angle) - 1) - 0.5
    return flow


def learn(model, truth):
    """Mean end-point error over the mean length of the truth, away from the border, before and after training."""
    shape = truth.shape[2:]
    texture = torch.rand((1, 1, *(n // 4 for n in shape)), generator=torch.Generator().manual_seed(1))
    moving = ops.resize(texture, shape=shape, order=3)
    fixed = ops.warp(moving, truth, bound="replicate", extrapolate="edge")
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    errors = []
    for _ in range(STEPS):
        outputs = model(moving, fixed)
        inner = (..., *[slice(5, -5)] * len(shape))
        error, length = ((v[inner].square().sum(1).sqrt().mean()) for v in (outputs["displacement"] - truth, truth))
        errors.append(error.item() / length.item())
        optimizer.zero_grad()
        (outputs["moved_view"] * (outputs["moved"] - fixed).square()).mean().backward()
        optimizer.step()
    return errors[0], errors[-1]


@pytest.mark.parametrize("name", NAMES)
def test_every_model_learns_a_known_field(name):
    torch.manual_seed(0)
    truth = (turn if name in ("unet_affine", "unet_rigid") else bump)((40, 48))
    before, after = learn(build(configured(name, 2)), truth)
    assert before > 0.9  # a network that compares moves a little from the start
    assert after < 0.12


@pytest.mark.parametrize(("name", "field"), [("unet_velocity", bump), ("unet_spline", bump), ("unet_rigid", turn)])
def test_models_learn_in_three_dimensions_too(name, field):
    torch.manual_seed(0)
    _, after = learn(build(configured(name, 3)), field((20, 24, 16)))
    assert after < 0.35
