"""Laws of the cascade."""

import pytest
import torch
from torch import nn

from regnet import ops
from regnet.models import AffineHead, Cascade, Registration, UNet, VelocityHead

from ..heads.copying import copying


class Fixed(nn.Module):
    """A network whose field is a constant of its size, in voxels of whatever grid it is given."""

    def __init__(self, *by):
        super().__init__()
        self.by = by

    def forward(self, moving, fixed):
        return torch.tensor(self.by).view(1, -1, *[1] * len(self.by)).expand(len(fixed), -1, *fixed.shape[2:])


class Recorder(Fixed):
    """Remembers what it was given."""

    def forward(self, moving, fixed):
        self.seen = moving, fixed
        return super().forward(moving, fixed)


def test_shifts_add_up_in_voxels_of_the_images():
    stages = [Registration(Fixed(*by)) for by in ((1.0, -0.5), (0.25, 2.0))]
    images = torch.rand(2, 2, 1, 13, 18)
    field = Cascade(stages, [4, 1])(*images)["displacement"]
    expected = torch.tensor([4 * 1.0 + 0.25, 4 * -0.5 + 2.0])
    torch.testing.assert_close(field, expected.view(1, 2, 1, 1).expand(2, 2, 13, 18))


def test_each_stage_sees_what_the_ones_before_have_left():
    last = Recorder(0.0, 0.0)
    moving, fixed = torch.rand(2, 1, 1, 12, 10)
    Cascade([Registration(Fixed(2.0, 1.0)), Registration(Fixed(-1.0, 1.0)), Registration(last)])(moving, fixed)
    torch.testing.assert_close(last.seen[0][:, :, :11, :8], moving[:, :, 1:, 2:])
    assert (last.seen[0][:, :, 11:] == 0).all() and (last.seen[0][..., 8:] == 0).all()
    assert last.seen[1] is fixed


def velocity(ndim):
    """A smooth diffeomorphism, whose head copies what its network says."""
    head = VelocityHead(ndim, ndim, steps=6, inverse=True)
    return copying(head, head.field)


class Waves(nn.Module):
    """A smooth field, the same for every pair."""

    def __init__(self, seed):
        super().__init__()
        self.seed = seed

    def forward(self, moving, fixed):
        nodes = torch.randn(1, 2, 3, 3, generator=torch.Generator().manual_seed(self.seed))
        return ops.resize(nodes, shape=fixed.shape[2:], order=3).expand(len(fixed), -1, -1, -1)


def test_the_map_is_the_composition_and_the_inverse_undoes_it():
    stages = [Registration(Waves(seed), velocity(2)) for seed in (0, 1)]
    images = torch.rand(2, 1, 1, 40, 32)
    outputs = Cascade(stages)(*images)
    first, second = (stage.fields(*images)["displacement"] for stage in stages)
    torch.testing.assert_close(outputs["displacement"], ops.compose(first, second, bound="replicate"))
    around = ops.compose(outputs["displacement"], outputs["inverse_displacement"], bound="replicate")
    assert outputs["displacement"].abs().max() > 1
    assert around[..., 5:-5, 5:-5].abs().mean() < 0.02


def test_a_single_stage_serves_every_factor_with_the_same_weights():
    one = Cascade([Registration(UNet(2, encoder=(4, 8), decoder=(4,)), VelocityHead(2, 4))], [4, 2, 1])
    two = Cascade([one.stages[0], one.stages[0], one.stages[0]], [4, 2, 1])
    images = torch.rand(2, 1, 1, 21, 18)
    torch.testing.assert_close(one(*images)["displacement"], two(*images)["displacement"])
    assert len(list(one.parameters())) == len(list(one.stages[0].parameters()))


def test_without_an_inverse_of_every_stage_there_is_none():
    stages = [Registration(Waves(0), velocity(2)), Registration(Fixed(1.0, 0.0))]
    assert set(Cascade(stages).fields(*torch.rand(2, 1, 1, 9, 8))) == {"displacement"}


@pytest.mark.parametrize("shape", [(24, 18), (12, 16, 9)])
def test_affine_and_deformable_train_together(shape):
    ndim = len(shape)
    affine = Registration(UNet(ndim, encoder=(4, 8), decoder=()), AffineHead(ndim, 8, stride=2))
    free = Registration(UNet(ndim, encoder=(4, 8), decoder=(4,)), VelocityHead(ndim, 4))
    model = Cascade([affine, free], [2, 1])
    for stage in model.stages:
        torch.nn.init.normal_(stage.head.field.convolution.weight, std=0.05)
    moving, fixed = torch.rand(2, 1, 1, *shape)
    (model(moving, fixed)["moved"] - fixed).square().mean().backward()
    assert all(parameter.grad.abs().max() > 0 for parameter in model.parameters())
