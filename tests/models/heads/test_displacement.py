"""Laws of the displacement head."""

import pytest
import torch

from regnet.models import DisplacementHead


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("shape", [(17, 10), (9, 8, 7)])
def test_the_field_lies_on_the_images_grid(shape, stride):
    head = DisplacementHead(len(shape), 3, stride=stride)
    outputs = head(torch.randn(2, 3, *(-(-size // stride) for size in shape)), shape)
    assert set(outputs) == {"displacement"}
    assert outputs["displacement"].shape == (2, len(shape), *shape)


def test_half_resolution_counts_voxels_of_the_images():
    head = DisplacementHead(2, 3, stride=2)
    head.field.convolution.weight.data.zero_()
    head.field.convolution.bias.data = torch.tensor([0.5, -1.0])
    field = head(torch.randn(1, 3, 5, 4), (9, 8))["displacement"]
    torch.testing.assert_close(field, torch.tensor([1.0, -2.0]).view(1, 2, 1, 1).expand(1, 2, 9, 8))
