import pytest
import torch

from regnet.data.splines import control_shape, random_field, spline_field


@pytest.mark.parametrize("shape", [(17,), (17, 12), (17, 12, 9), (1, 5)])
@pytest.mark.parametrize("spacing", [1.0, 2.0, 3.7, 40.0])
def test_a_spline_reproduces_linear_functions(shape, spacing):
    points = control_shape(shape, spacing)
    lattice = torch.meshgrid(*(torch.arange(n, dtype=torch.float32) - 1 for n in points), indexing="ij")
    grid = torch.meshgrid(*(torch.arange(n, dtype=torch.float32) for n in shape), indexing="ij")
    slopes = [0.5, -2.0, 3.0][: len(shape)]
    control = sum(s * x * spacing for s, x in zip(slopes, lattice, strict=True)) + 1
    expected = sum(s * x for s, x in zip(slopes, grid, strict=True)) + 1
    torch.testing.assert_close(spline_field(control[None, None], shape, spacing)[0, 0], expected, atol=1e-3, rtol=1e-5)


def test_a_single_control_point_gives_the_cubic_spline():
    control = torch.zeros(1, 1, *control_shape((9,), 2.0))
    control[0, 0, 3] = 1  # lies at voxel (3 - 1) * 2 = 4
    expected = torch.tensor([0, 1 / 48, 1 / 6, 23 / 48, 2 / 3, 23 / 48, 1 / 6, 1 / 48, 0])
    torch.testing.assert_close(spline_field(control, (9,), 2.0)[0, 0], expected)


@pytest.mark.parametrize("ndim", [2, 3])
def test_a_random_field_has_mean_zero_and_deviation_one(ndim):
    shape = (200, 160) if ndim == 2 else (48, 44, 40)
    field = random_field(shape, 2.0, 4, torch.Generator().manual_seed(3))
    assert field.shape == (1, 4, *shape)
    assert abs(float(field.mean())) < 0.06
    assert abs(float(field.std()) - 1) < 0.03
