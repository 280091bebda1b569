"""Laws of the last convolution, and of the way from the features' grid to the images'."""

import pytest
import torch

from regnet.models.heads.field import FieldLayer, to_grid


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_a_fresh_field_is_nearly_zero_and_of_one_channel_per_axis(ndim):
    field = FieldLayer(ndim, 8)(torch.randn(2, 8, *(9, 7, 5)[:ndim]))
    assert field.shape == (2, ndim, *(9, 7, 5)[:ndim])
    assert 0 < field.abs().max() < 1e-2


def test_the_field_is_float32_under_autocast():
    layer = FieldLayer(2, 4)
    layer.convolution.weight.data.normal_()
    features = torch.randn(1, 4, 9, 7)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        field = layer(features)
    assert field.dtype == torch.float32
    torch.testing.assert_close(field, layer(features))


def test_half_resolution_doubles_a_constant_field():
    field = torch.tensor([1.0, -0.5, 0.25]).view(1, 3, 1, 1, 1).expand(2, 3, 5, 4, 3)
    for shape in [(10, 8, 6), (9, 7, 5)]:
        torch.testing.assert_close(to_grid(field, shape, stride=2), 2 * field[..., :1, :1, :1].expand(2, 3, *shape))


@pytest.mark.parametrize("shape", [(18, 13), (17, 14)])
@pytest.mark.parametrize("stride", [2, 4])
def test_a_linear_field_stays_the_same_map(shape, stride):
    # Node k covers voxels k s to k s + s - 1, so its centre is voxel k s + (s - 1) / 2; u(p) = 0.1 p everywhere inside.
    coarse = [-(-size // stride) for size in shape]
    centres = torch.meshgrid(*[torch.arange(n) * stride + (stride - 1) / 2 for n in coarse], indexing="ij")
    field = 0.1 * torch.stack(centres)[None] / stride
    fine = to_grid(field, shape, stride)
    positions = torch.stack(torch.meshgrid(*[torch.arange(float(n)) for n in shape], indexing="ij"))[None]
    inner = (..., *(slice(stride, size - stride) for size in shape))
    torch.testing.assert_close(fine[inner], 0.1 * positions[inner], rtol=0, atol=1e-5)


def test_features_of_another_stride_are_refused():
    with pytest.raises(ValueError, match="at stride 2: expected"):
        to_grid(torch.zeros(1, 2, 8, 8), (8, 8), stride=2)
    with pytest.raises(ValueError, match="takes 4 channels, the network gives 3"):
        FieldLayer(2, 4)(torch.zeros(1, 3, 8, 8))
