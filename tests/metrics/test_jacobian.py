"""Regularity of maps whose determinants are known in closed form."""

import math

import pytest
import torch
from torch import Tensor

from regnet.metrics import (
    folding_fraction,
    jacobian_statistics,
    log_jacobian_determinant,
    non_diffeomorphic_volume,
    sdlogj,
)


def _points(*shape: int) -> Tensor:
    axes = [torch.arange(n, dtype=torch.float64) for n in shape]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"))[None]


def _linear(matrix: list[list[float]], *shape: int) -> Tensor:
    return torch.einsum("ij,nj...->ni...", torch.tensor(matrix, dtype=torch.float64), _points(*shape))


@pytest.mark.parametrize(
    ("matrix", "fraction"),
    [
        ([[0, 0, 0], [0, 0, 0], [0, 0, 0]], 0),  # determinant 1
        ([[0.5, 0, 0], [0, 0.5, 0], [0, 0, 0.5]], 0),  # 3.375
        ([[-2, 0, 0], [0, 0, 0], [0, 0, 0]], 1),  # -1
        ([[0, 0.3, 0], [0, 0, 0], [0, 0, 0]], 0),  # 1
        ([[-1, 1, 0], [1, -1, 0], [0, 0, 0]], 1),  # -1
        ([[0.5, 0], [0, 0.5]], 0),  # 2.25
        ([[-1, 0], [0, 0]], 1),  # 0: a map onto a line folds
    ],
)
def test_folding_fraction_of_linear_maps(matrix: list[list[float]], fraction: float) -> None:
    # C-25: the identity belongs to the map, and axes are not mixed up
    shape = (6, 5, 7)[: len(matrix)]
    assert folding_fraction(_linear(matrix, *shape)) == fraction
    assert folding_fraction(_linear(matrix, *shape).float().repeat(2, *[1] * (1 + len(matrix)))) == fraction


@pytest.mark.parametrize("ndim", [2, 3])
def test_folding_fraction_counts_voxels_inside_the_mask(ndim: int) -> None:
    shape = (10, 6, 5)[:ndim]
    flow = torch.zeros(1, ndim, *shape, dtype=torch.float64)
    flow[:, 0] = torch.where(_points(*shape)[:, 0] < 5, 0, -2 * (_points(*shape)[:, 0] - 5))
    mask = torch.zeros(1, 1, *shape)
    mask[:, :, 4:8] = 1
    # central differences: slope of the map 1 up to index 4, (5 - 2 - 4 + 1) / 2 = 0 at 5, -1 from 6 on
    assert folding_fraction(flow) == pytest.approx(0.5)
    assert folding_fraction(flow, mask) == pytest.approx(0.75)
    assert folding_fraction(flow, mask == 1) == pytest.approx(0.75)
    assert math.isnan(folding_fraction(flow, 0 * mask))


def test_a_structure_that_was_enlarged_has_a_determinant_below_one() -> None:
    # C-26: a ball of radius 5 in the moving image, 7.5 in the fixed one; (1 / 1.5)³ = 0.296
    flow = (_points(9, 10, 11) - 4.5) * (1 / 1.5 - 1)
    assert torch.allclose(log_jacobian_determinant(flow).exp(), torch.tensor(0.296296, dtype=torch.float64))
    assert float(log_jacobian_determinant(flow).mean()) == pytest.approx(-1.2164, abs=1e-4)


def test_sdlogj_of_two_halves_is_half_the_difference_of_their_logarithms() -> None:
    # along axis 0 slopes of 2 and 0.5, one voxel on each side of the kink left out
    x = _points(20, 4)[:, 0]
    flow = torch.stack([torch.where(x < 10, x, 10 - 0.5 * (x - 10)), 0 * x], 1)
    mask = torch.ones(1, 1, 20, 4)
    mask[:, :, 9:12] = 0
    mask[:, :, 18:] = 0
    weights = torch.tensor([9.0, 6.0], dtype=torch.float64) / 15
    for offset in (0.0, 3.0):
        logs = torch.log(torch.tensor([2.0, 0.5], dtype=torch.float64) + offset)
        mean = (weights * logs).sum()
        expected = (weights * (logs - mean) ** 2).sum().sqrt()
        assert sdlogj(flow, mask, offset) == pytest.approx(float(expected))


def test_sdlogj_stays_finite_on_folds_and_does_not_see_an_affine_map() -> None:
    folded = _linear([[-2, 0], [0, 0]], 6, 7)
    assert sdlogj(folded) == pytest.approx(0)
    bumps = 0.5 * torch.sin(_points(12, 13))
    scaled = 1.25 * (_points(12, 13) + bumps) - _points(12, 13)
    assert sdlogj(scaled) == pytest.approx(sdlogj(bumps)) and sdlogj(bumps) > 0.1


def test_statistics_of_several_masks_are_the_single_ones() -> None:
    flow = 2 * torch.randn(2, 2, 9, 8, generator=torch.Generator().manual_seed(0))
    mask = torch.zeros(1, 1, 9, 8)
    mask[..., 2:5, 3:] = 1
    for found, m in zip(jacobian_statistics(flow, mask, None), (mask, None), strict=True):
        assert found["folding"] == folding_fraction(flow, m) and found["sdlogj"] == sdlogj(flow, m)
        assert found["sdlogj_learn2reg"] == sdlogj(flow, m, offset=3, margin=2)


def test_percentiles_are_those_of_the_determinant_inside_the_mask() -> None:
    x = torch.arange(101, dtype=torch.float64)
    flow = torch.zeros(1, 2, 101, 4, dtype=torch.float64)
    flow[0, 0] = (x**2 / 4)[:, None]  # central differences of x² / 4 are x / 2
    mask = torch.zeros(1, 1, 101, 4)
    mask[:, :, 20:41] = 1  # determinants 11, 11.5 ... 21
    (found,) = jacobian_statistics(flow, mask)
    assert found["p5"] == pytest.approx(11.5) and found["p95"] == pytest.approx(20.5)


def test_a_large_grid_is_worked_on_in_parts_that_fit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = torch.randn(1, 3, 17, 6, 5, generator=torch.Generator().manual_seed(1))
    mask = torch.rand(1, 1, 17, 6, 5, generator=torch.Generator().manual_seed(2)) > 0.4
    whole = jacobian_statistics(flow, mask), non_diffeomorphic_volume(flow, mask)
    monkeypatch.setattr("regnet.metrics._slabs._VOXELS", 4 * 30)
    assert jacobian_statistics(flow, mask) == whole[0]
    assert non_diffeomorphic_volume(flow, mask) == pytest.approx(whole[1])


def test_a_mask_that_does_not_fit_is_refused() -> None:
    for mask in (torch.ones(6, 5), torch.ones(1, 1, 5, 6), torch.ones(3, 1, 6, 5)):
        for metric in (folding_fraction, sdlogj, jacobian_statistics, non_diffeomorphic_volume):
            with pytest.raises(ValueError, match="mask must be"):
                metric(torch.zeros(1, 2, 6, 5), mask)
    assert math.isnan(sdlogj(torch.zeros(1, 2, 4, 5), margin=2)) and sdlogj(torch.zeros(1, 2, 5, 5), margin=2) == 0


def test_a_field_that_is_nan_where_it_counts_has_no_figure() -> None:
    flow = torch.zeros(1, 3, 6, 7, 8)
    flow[0, 1, 3, 3, 3] = torch.nan
    mask = torch.zeros(1, 1, 6, 7, 8)
    mask[..., :2] = 1
    assert math.isnan(folding_fraction(flow)) and folding_fraction(flow, mask) == 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int16])
def test_determinants_of_fields_in_any_type_are_taken_in_float32(dtype: torch.dtype) -> None:
    flow = (8 * torch.rand(1, 3, 6, 5, 4, generator=torch.Generator().manual_seed(0)) - 4).to(dtype)
    for measure in (sdlogj, non_diffeomorphic_volume, folding_fraction):
        assert measure(flow) == measure(flow.float()) > 0
    assert jacobian_statistics(flow, None) == jacobian_statistics(flow.float(), None)
    assert torch.equal(log_jacobian_determinant(flow), log_jacobian_determinant(flow.float()))
