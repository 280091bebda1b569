"""What a model learns that is told the regularisation weight, or that draws: by itself, from one pair."""

import torch

from regnet import ops
from regnet.losses import KL, MSE, Diffusion, Objective, diffusion
from regnet.models import build

from .configured import configured
from .test_learning import bump


def _pair(shape, flat=0):
    """A texture, without any in the first ``flat`` columns, and the same bent by :func:`bump`."""
    texture = torch.rand((1, 1, *(n // 4 for n in shape)), generator=torch.Generator().manual_seed(1))
    moving = ops.resize(texture, shape=shape, order=3)
    moving[:, :, :, :flat] = 0.5
    return moving, ops.warp(moving, bump(shape), bound="replicate", extrapolate="edge")


def _train(model, loss, moving, fixed, steps, told):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(steps):
        outputs = model(moving, fixed, **told(step))
        optimizer.zero_grad()
        loss(outputs, {"moving": moving, "fixed": fixed})[0].backward()
        optimizer.step()
    model.eval()


def test_a_larger_weight_gives_a_smoother_field_of_one_network():
    torch.manual_seed(0)
    moving, fixed = _pair((40, 48))
    loss = Objective({"similarity": MSE(weight=3.0), "smoothness": Diffusion(weight=1.0)})
    weights = torch.rand(120, generator=torch.Generator().manual_seed(2))
    model = build(configured("conditional_velocity", 2))
    _train(model, loss, moving, fixed, 120, lambda step: {"regularity": weights[step : step + 1]})
    rough, error = [], []
    for weight in (0.0, 0.25, 0.5, 1.0):
        with torch.no_grad():
            outputs = model(moving, fixed, regularity=torch.tensor([weight]))
        rough.append(float(diffusion(outputs["velocity"])))
        error.append(float((outputs["moved"] - fixed).square().mean()))
    assert rough == sorted(rough, reverse=True) and rough[0] > 2 * rough[-1]
    assert error[-1] > 2 * error[0]  # what is smoother fits less


def test_a_model_that_draws_learns_the_field_and_where_it_knows_nothing():
    torch.manual_seed(0)
    truth, (moving, fixed) = bump((40, 48)), _pair((40, 48), flat=20)
    loss = Objective({"similarity": MSE(weight=2000.0), "divergence": KL(precision=1.0)})
    model = build(configured("probabilistic_velocity", 2))
    torch.nn.init.constant_(model.head.log_variance.convolution.bias, -1.4)  # the prior's, where no texture is
    _train(model, loss, moving, fixed, 60, lambda k: {"draw": torch.tensor([k])})
    with torch.no_grad():
        outputs, spread = model(moving, fixed), model.spread(moving, fixed, range(20))
    textured = (..., slice(8, -8), slice(24, -6))
    assert (outputs["displacement"] - truth)[textured].norm(dim=1).mean() < 0.2 * truth[textured].norm(dim=1).mean()
    assert spread[..., 8:-8, 4:16].mean() > 1.8 * spread[textured].mean()
