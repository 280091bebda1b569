"""Laws of the roughness of control points: integrals of the field that they make."""

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from regnet import ops
from regnet.losses import bending_energy, spline_bending_energy, spline_diffusion

CASES = [((7, 6), (2.3, 3.0)), ((5, 6, 7), (2.3, 3.0, 1.0)), ((9,), (4.0,)), ((6, 1, 5), (2.0, 2.0, 2.5))]


def _control(shape: tuple[int, ...], spacing: tuple[float, ...], more: int = 1) -> Tensor:
    points = [int((n - 1) / s) + 4 + more for n, s in zip(shape, spacing, strict=True)]
    generator = torch.Generator().manual_seed(0)
    return torch.randn(2, len(shape), *points, generator=generator, dtype=torch.float64)


def _integral(
    control: Tensor, shape: tuple[int, ...], spacing: tuple[float, ...], size: list[float], degree: int
) -> float:
    """Mean squared derivatives at points so many that the mean is the integral: Simpson's rule would not do better."""
    ndim, nodes, weights = len(shape), [], []
    for n, s in zip(shape, spacing, strict=True):
        if n == 1:
            nodes.append(torch.zeros(1).double())
            weights.append(torch.ones(1).double())
            continue
        knots = np.unique(np.append(np.arange(0, n - 1, s), n - 1))
        x, w = np.polynomial.legendre.leggauss(5)
        half = np.diff(knots)[:, None] / 2
        nodes.append(torch.from_numpy((knots[:-1, None] + half * (x + 1)).ravel()))
        weights.append(torch.from_numpy((half * w).ravel() / (n - 1)))
    places = torch.stack(torch.meshgrid(*(x / s + 1 for x, s in zip(nodes, spacing, strict=True)), indexing="ij"))
    sample = ops.grad if degree == 1 else ops.hess
    derivative = sample(control, places[None], order=3, bound="zero").flatten(2, 1 + degree)
    weight = weights[0]
    for other in weights[1:]:
        weight = weight[..., None] * other
    total = 0.0
    for k, axes in enumerate(itertools.product(range(ndim), repeat=degree)):
        if any(shape[axis] == 1 for axis in axes):
            continue
        for i in range(ndim):
            scale = size[i] / np.prod([spacing[axis] * size[axis] for axis in axes])
            total += float((weight * (scale * derivative[:, i, k]) ** 2).sum()) / len(control)
    return total


@pytest.mark.parametrize(("shape", "spacing"), CASES)
@pytest.mark.parametrize(("energy", "degree"), [(spline_diffusion, 1), (spline_bending_energy, 2)])
def test_it_is_the_integral_over_the_field(energy, degree, shape, spacing) -> None:  # type: ignore[no-untyped-def]
    control, size = _control(shape, spacing), [1.0, 2.0, 0.5][: len(shape)]
    expected = _integral(control, shape, spacing, size, degree)
    assert float(energy(control, shape, spacing, size)) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("shape", "spacing"), [((4, 3), (2.3, 3.0)), ((9,), (2.5,))])
@pytest.mark.parametrize("energy", [spline_diffusion, spline_bending_energy])
def test_it_has_its_exact_gradients(energy, shape, spacing) -> None:  # type: ignore[no-untyped-def]
    control = _control(shape, spacing, 0)[:1].requires_grad_()
    for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
        assert check(lambda c: energy(c, shape, spacing), (control,), eps=1e-6, atol=1e-8, rtol=1e-6)


def test_an_affine_field_does_not_bend_and_has_its_slopes() -> None:
    # control[k] = A (k - 1) s gives u = A p: Σ A² in voxels
    shape, spacing = (7, 9), (2.0, 2.5)
    lines = [(torch.arange(n, dtype=torch.float64) - 1) * s for n, s in zip((7, 8), spacing, strict=True)]
    x, y = torch.meshgrid(*lines, indexing="ij")
    control = torch.stack([0.3 * x - 0.2 * y, 0.1 * x + 0.4 * y])[None]
    assert float(spline_bending_energy(control, shape, spacing)) == pytest.approx(0, abs=1e-14)
    assert float(spline_diffusion(control, shape, spacing)) == pytest.approx(0.09 + 0.04 + 0.01 + 0.16)


def test_the_dense_energy_comes_near_it_on_a_fine_grid() -> None:
    control = _control((9, 7), (4.0, 4.0), 0)
    fine = [8 * 16 + 1, 6 * 16 + 1]
    dense = ops.ffd(16 * control, fine, [64.0, 64.0])
    assert float(bending_energy(dense, 1 / 16)) == pytest.approx(
        float(spline_bending_energy(control, (9, 7), 4.0)), rel=0.03
    )


def test_control_points_that_do_not_cover_the_image_are_refused() -> None:
    control = torch.zeros(1, 2, 6, 6)
    with pytest.raises(ValueError, match="9 voxels at spacing 2 need 8 control points: got 6"):
        spline_diffusion(control, (9, 5), 2.0)
    with pytest.raises(ValueError, match="must be positive, for 2 axes"):
        spline_bending_energy(control, (9, 5), (2.0, 0.0))


def test_the_spacing_may_be_any_numbers() -> None:
    control = torch.rand(1, 2, 7, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = spline_diffusion(control, (9, 9), [3.0, 3.0])
    for spacing in (3, torch.tensor(3.0), torch.tensor([3.0, 3.0]), torch.full((2,), 3).numpy()):
        assert spline_diffusion(control, (9, 9), spacing) == expected
