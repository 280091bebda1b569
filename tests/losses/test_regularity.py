"""Laws of the regularity losses."""

import pytest
import torch
from torch import Tensor

from regnet.losses import bending_energy, diffusion


def _points(*shape: int) -> list[Tensor]:
    return list(torch.meshgrid(*(torch.arange(n, dtype=torch.float64) for n in shape), indexing="ij"))


def _random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("shape", [(8, 8), (8, 8, 8), (5, 12, 3), (9, 4)])
def test_diffusion_of_a_stretch_by_three_is_four_in_any_dimension_and_size(shape: tuple[int, ...]) -> None:
    # C-32: u = (2 x, 0, ...); the sum over derivatives is 2² = 4
    flow = torch.zeros(2, len(shape), *shape, dtype=torch.float64)
    flow[:, 0] = 2 * _points(*shape)[0]
    assert float(diffusion(flow)) == pytest.approx(4)
    assert float(diffusion(torch.zeros_like(flow))) == 0


def test_diffusion_measures_lengths_in_mm() -> None:
    # 1 voxel along an axis of 3 mm, per voxel of 2 mm: slope 3/2; and 2/3 the other way about
    flow = torch.zeros(1, 2, 6, 7, dtype=torch.float64)
    flow[:, 0] = _points(6, 7)[1]
    assert float(diffusion(flow, (3.0, 2.0))) == pytest.approx(2.25)
    assert float(diffusion(flow, torch.tensor([[2.0, 3.0]]))) == pytest.approx(4 / 9)


def test_bending_energy_counts_each_mixed_derivative_twice() -> None:
    # u = (a x² + b xy, c yz, 0): second derivatives 2a; b twice; c twice
    x, y, z = _points(7, 6, 5)
    a, b, c = 0.5, 3.0, -2.0
    flow = torch.stack([a * x**2 + b * x * y, c * y * z, torch.zeros_like(x)])[None]
    assert float(bending_energy(flow)) == pytest.approx((2 * a) ** 2 + 2 * b**2 + 2 * c**2)


def test_bending_energy_of_an_affine_map_is_zero() -> None:
    x, y = _points(7, 6)
    assert float(bending_energy(torch.stack([2 * x - y, 3 + x / 2])[None])) == pytest.approx(0, abs=1e-20)


def test_bending_energy_measures_lengths_in_mm() -> None:
    # u_0 = p_0 p_1 voxels at 2 x 5 mm: d²u/dxdy = 2 / (2 * 5) per mm, twice
    x, y = _points(6, 7)
    flow = torch.stack([x * y, torch.zeros_like(x)])[None]
    assert float(bending_energy(flow, (2, 5))) == pytest.approx(2 * 0.2**2)


@pytest.mark.parametrize("penalty", [diffusion, bending_energy])
def test_a_penalty_does_not_depend_on_the_sampling(penalty) -> None:  # type: ignore[no-untyped-def]
    # C-31: u = 3 sin(x / 10) mm along every axis, in a 64 mm cube
    values = []
    for size in [(1.0, 1.0, 1.0), (2.0, 2.0, 2.0), (1.0, 1.0, 2.0)]:
        points = _points(*(round(64 / s) for s in size))
        flow = torch.stack([3 * torch.sin((p + 0.5) * s / 10) / s for p, s in zip(points, size, strict=True)])
        values.append(float(penalty(flow[None], size)))
    assert values[1] == pytest.approx(values[0], rel=0.03)
    assert values[2] == pytest.approx(values[0], rel=0.03)


@pytest.mark.parametrize("penalty", [diffusion, bending_energy])
@pytest.mark.parametrize("shape", [(2, 2, 5, 4), (1, 3, 3, 5, 4), (2, 1, 6), (1, 3, 1, 2, 4)])
def test_a_penalty_has_its_exact_gradient(penalty, shape: tuple[int, ...]) -> None:  # type: ignore[no-untyped-def]
    size = [1.0, 2.0, 0.5][: shape[1]]
    flow = (0.1 * _random(*shape)).requires_grad_()
    assert torch.autograd.gradcheck(lambda u: penalty(u, size), (flow,), eps=1e-6, atol=1e-8, rtol=1e-6)


@pytest.mark.parametrize("penalty", [diffusion, bending_energy])
def test_a_penalty_of_a_batch_is_the_mean_over_its_samples(penalty) -> None:  # type: ignore[no-untyped-def]
    flow, sizes = _random(3, 2, 6, 5), torch.tensor([[1.0, 2.0], [3.0, 1.0], [1.0, 1.0]])
    one_by_one = [penalty(flow[n : n + 1], sizes[n]) for n in range(3)]
    assert torch.allclose(penalty(flow, sizes), torch.stack(one_by_one).mean())


@pytest.mark.parametrize("penalty", [diffusion, bending_energy])
def test_a_penalty_of_a_half_precision_field_is_computed_in_float32(penalty) -> None:  # type: ignore[no-untyped-def]
    flow = _random(1, 2, 16, 15).half().requires_grad_()
    value = penalty(flow)
    value.backward()
    assert value.dtype == torch.float32 and flow.grad.dtype == torch.float16
    assert value.item() == pytest.approx(float(penalty(flow.detach().double())), rel=1e-5)


@pytest.mark.parametrize("penalty", [diffusion, bending_energy])
def test_a_single_voxel_has_no_penalty(penalty) -> None:  # type: ignore[no-untyped-def]
    assert float(penalty(torch.ones(1, 3, 1, 1, 1))) == 0


@pytest.mark.parametrize("penalty", [diffusion, bending_energy])
def test_fields_and_sizes_that_do_not_fit_are_refused(penalty) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="one channel per spatial axis"):
        penalty(torch.zeros(1, 3, 4, 4))
    for size in ((1.0, 2.0, 3.0), 0.0, (1.0, -1.0), torch.ones(3, 2)):
        with pytest.raises(ValueError, match="voxel_size must be"):
            penalty(torch.zeros(2, 2, 4, 4), size)
