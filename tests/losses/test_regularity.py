"""What each roughness is of fields that one can do by hand."""

import math

import pytest
import torch

from regnet.losses import bending_energy, diffusion, elastic, total_variation
from tests.losses.test_every_field import points


@pytest.mark.parametrize("shape", [(8, 8), (8, 8, 8), (5, 12, 3), (9, 4)])
def test_diffusion_of_a_stretch_by_three_is_four_in_any_dimension_and_size(shape: tuple[int, ...]) -> None:
    # C-32: u = (2 x, 0, ...); the sum over derivatives is 2² = 4
    flow = torch.zeros(2, len(shape), *shape, dtype=torch.float64)
    flow[:, 0] = 2 * points(*shape)[0]
    assert float(diffusion(flow)) == pytest.approx(4)
    assert float(diffusion(flow, norm="l1")) == pytest.approx(2)
    assert float(total_variation(flow)) == pytest.approx(2, abs=1e-3)
    assert float(diffusion(torch.zeros_like(flow))) == 0


def test_total_variation_is_a_length() -> None:
    # derivative ((3, 0), (0, 4)): length 5, whatever the directions
    x, y = points(7, 6)
    flow = torch.stack([3 * x, 4 * y])[None]
    assert float(total_variation(flow, smooth=1e-6)) == pytest.approx(5, abs=1e-5)
    assert float(diffusion(flow, norm="l1")) == pytest.approx(7)


def test_elastic_energy_counts_shear_and_change_of_volume() -> None:
    # u = (a x + b y, c y): strain a, c, and b/2 twice; mu (a² + c² + b²/2) + lam/2 (a + c)²
    x, y = points(7, 6)
    a, b, c = 0.5, 0.2, -0.1
    flow = torch.stack([a * x + b * y, c * y])[None]
    expected = 2.0 * (a**2 + c**2 + b**2 / 2) + 3.0 / 2 * (a + c) ** 2
    assert float(elastic(flow, mu=2.0, lam=3.0)) == pytest.approx(expected)


def test_a_small_rotation_costs_no_elastic_energy_in_mm() -> None:
    # u = w (-y, x) mm at 2 x 5 mm
    x, y = points(7, 6)
    flow = torch.stack([-0.01 * 5 * y / 2, 0.01 * 2 * x / 5])[None]
    assert float(elastic(flow, (2.0, 5.0), lam=1.0)) == pytest.approx(0, abs=1e-20)
    assert float(elastic(flow)) > 1e-5


def test_derivatives_measure_lengths_in_mm() -> None:
    # 1 voxel along an axis of 3 mm, per voxel of 2 mm: slope 3/2; and 2/3 the other way about
    flow = torch.zeros(1, 2, 6, 7, dtype=torch.float64)
    flow[:, 0] = points(6, 7)[1]
    assert float(diffusion(flow, (3.0, 2.0))) == pytest.approx(2.25)
    assert float(diffusion(flow, torch.tensor([[2.0, 3.0]]))) == pytest.approx(4 / 9)
    assert float(diffusion(flow, (3.0, 2.0), norm="l1")) == pytest.approx(1.5)
    assert float(total_variation(flow, (3.0, 2.0), smooth=1e-9)) == pytest.approx(1.5)
    assert float(elastic(flow, (3.0, 2.0))) == pytest.approx(2.25 / 2)


def test_bending_energy_counts_each_mixed_derivative_twice() -> None:
    # u = (a x² + b xy, c yz, 0): second derivatives 2a; b twice; c twice
    x, y, z = points(7, 6, 5)
    a, b, c = 0.5, 3.0, -2.0
    flow = torch.stack([a * x**2 + b * x * y, c * y * z, torch.zeros_like(x)])[None]
    assert float(bending_energy(flow)) == pytest.approx((2 * a) ** 2 + 2 * b**2 + 2 * c**2)


def test_bending_energy_of_an_affine_map_is_zero() -> None:
    x, y = points(7, 6)
    assert float(bending_energy(torch.stack([2 * x - y, 3 + x / 2])[None])) == pytest.approx(0, abs=1e-20)


def test_bending_energy_measures_lengths_in_mm() -> None:
    # u_0 = p_0 p_1 voxels at 2 x 5 mm: d²u/dxdy = 2 / (2 * 5) per mm, twice
    x, y = points(6, 7)
    flow = torch.stack([x * y, torch.zeros_like(x)])[None]
    assert float(bending_energy(flow, (2, 5))) == pytest.approx(2 * 0.2**2)


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence:UserWarning")  # MONAI's
def test_linear_and_quadratic_fields_cost_what_they_cost_elsewhere() -> None:
    # MONAI takes the mean over the components where we take the sum; its differences are central, exact here as ours
    monai = pytest.importorskip("monai.losses")
    x, y, z = points(9, 8, 7)
    linear = torch.stack([0.3 * x - y, z + 0.5 * y, 2 * x])[None]
    assert float(diffusion(linear)) == pytest.approx(3 * float(monai.DiffusionLoss()(linear)))
    quadratic = torch.stack([0.3 * x**2 - x * y, z * y, 2 * x * z + y**2])[None]
    assert float(bending_energy(quadratic)) == pytest.approx(3 * float(monai.BendingEnergyLoss()(quadratic)))


def test_settings_out_of_range_are_refused() -> None:
    flow = torch.zeros(1, 2, 4, 4)
    with pytest.raises(ValueError, match="norm must be one of l1, l2"):
        diffusion(flow, norm="l3")
    with pytest.raises(ValueError, match="smooth must be positive"):
        total_variation(flow, smooth=0)
    assert math.isfinite(float(total_variation(flow)))
