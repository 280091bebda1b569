"""Laws of shrinking, and of what a composition is made of."""

import pytest
import torch
from torch import nn

from regnet.models import Cascade, Pyramid, Registration
from regnet.models.compositions.scale import shrink
from regnet.models.heads.field import to_grid


def test_a_node_is_the_mean_of_the_voxels_it_covers():
    image = torch.arange(7.0).view(1, 1, 7)
    torch.testing.assert_close(shrink(image, 3), torch.tensor([[[1.0, 4.0, 6.0]]]))  # 0 1 2 | 3 4 5 | 6
    torch.testing.assert_close(shrink(image, 8), torch.tensor([[[3.0]]]))
    assert shrink(image, 1) is image


@pytest.mark.parametrize("shape", [(16,), (16, 24), (8, 16, 24)])
def test_a_linear_image_keeps_its_place(shape):
    # What a node covers has its middle at k f + (f - 1) / 2, where `to_grid` puts the field of that node too.
    axes = torch.meshgrid(*[torch.arange(float(n)) for n in shape], indexing="ij")
    image = torch.stack(axes)[None]
    small = shrink(image, 4)
    coarse = torch.meshgrid(*[torch.arange(n // 4) * 4 + 1.5 for n in shape], indexing="ij")
    torch.testing.assert_close(small, torch.stack(coarse)[None])
    back = to_grid(small / 4, shape, 4)
    inner = (..., *[slice(2, -2)] * len(shape))
    torch.testing.assert_close(back[inner], image[inner])


class Shift(nn.Module):
    """A network whose field is a constant."""

    def forward(self, moving, fixed):
        return torch.ones(len(fixed), fixed.ndim - 2, *fixed.shape[2:])


@pytest.mark.parametrize("composition", [Cascade, Pyramid])
def test_mistakes_are_told(composition):
    with pytest.raises(ValueError, match=r"a stage must be a whole model .* got Shift"):
        composition([Shift()], [1])
    stage = Registration(Shift())
    for stages, factors in (([], [1]), ([stage, stage], [4, 2, 1]), ([stage], [0])):
        with pytest.raises(ValueError, match="one positive factor a stage"):
            composition(stages, factors)


def test_factors_of_a_pyramid_divide_each_other():
    with pytest.raises(ValueError, match=r"must be a multiple of the next, got \[3, 2\]"):
        Pyramid([Registration(Shift())], [3, 2])
