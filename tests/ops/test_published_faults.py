"""Faults found in other spline libraries, numbered as in the project's notes, with the right values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from regnet import ops
from tests import reference
from tests.ops.cases import CHECK, f64, off_knots


def at(*point: float) -> Tensor:
    """One coordinate, ``(1, D, 1, ...)``."""
    return f64(point).reshape(1, len(point), *[1] * len(point))


@pytest.mark.parametrize(
    ("order", "out", "by_coords"),
    [
        (1, (0.8, 12.2, 22.60625), ((3, 0.35), (21.5, 4.4), (40.875, 9.15))),
        (3, (1.036882, 12.416667, 21.683659), ((2.327474, 0.392773), (21.494792, 4.15), (28.910156, 8.714063))),
    ],
)
def test_b1_push_backward_reads_the_cotangent_with_its_own_strides(order: int, out: Any, by_coords: Any) -> None:
    coords = f64([(0.25, 0.5), (1.5, 3.25), (2.75, 1.125)]).T[None, :, :, None].requires_grad_()
    value = f64([1, 2, 3]).reshape(1, 1, 3, 1).requires_grad_()
    ramp = (5 * torch.arange(4)[:, None] + torch.arange(5)).double().square() / 10
    for cotangent in (ramp, ramp.T.contiguous().T, torch.stack([ramp, ramp], -1)[..., 0]):
        pushed = ops.push(value, coords, (4, 5), order)
        got = torch.autograd.grad(pushed, (value, coords), cotangent[None, None])
        torch.testing.assert_close(got[0].flatten(), f64(out), rtol=0, atol=1e-6)
        torch.testing.assert_close(got[1][0, :, :, 0].T, f64(by_coords), rtol=0, atol=1e-6)


def test_b2_the_gradient_of_a_linear_grad_reaches_the_image_in_1d() -> None:
    coeff = torch.zeros(1, 1, 3, dtype=torch.float64, requires_grad=True)
    ops.grad(coeff, at(0.25), 1).sum().backward()
    assert coeff.grad is not None and coeff.grad.flatten().tolist() == [-1, 1, 0]


def test_b3_the_gradient_of_a_linear_grad_reaches_the_coordinates_in_2d() -> None:
    (a, b), (c, d) = (1.0, 2.0), (4.0, 9.0)
    coords = at(0.3, 0.8).requires_grad_()
    ops.grad(f64([[[[a, b], [c, d]]]]), coords, 1).backward(f64([5.0, 7.0]).reshape(1, 1, 2, 1, 1))
    mixed = a - b - c + d
    assert coords.grad is not None
    torch.testing.assert_close(coords.grad.flatten(), f64([7 * mixed, 5 * mixed]))


def test_b4_the_gradient_of_a_linear_grad_reaches_the_coordinates_in_3d() -> None:
    coeff = torch.randn(1, 1, 2, 2, 2, dtype=torch.float64)
    coords, (gx, gy, gz) = at(0.3, 0.8, 0.4).requires_grad_(), (5.0, 7.0, 11.0)
    ops.grad(coeff, coords, 1).backward(f64([gx, gy, gz]).reshape(1, 1, 3, 1, 1, 1))
    h = reference.hess(coeff, coords, 1)[0, 0, :, :, 0, 0, 0]
    want = [gy * h[0, 1] + gz * h[0, 2], gx * h[0, 1] + gz * h[1, 2], gx * h[0, 2] + gy * h[1, 2]]
    assert coords.grad is not None
    torch.testing.assert_close(coords.grad.flatten(), f64(want))


@pytest.mark.parametrize("bound", reference.BOUNDS)
def test_b5_cubic_second_derivatives_respect_the_bound(bound: str) -> None:
    coeff = torch.randn(1, 1, 4, 5, dtype=torch.float64)
    for point in ((-0.7, 4.6), (3.8, -2.3)):
        got = ops.hess(coeff, at(*point), 3, bound)
        np.testing.assert_allclose(got.numpy(), reference.hess(coeff, at(*point), 3, bound), rtol=0, atol=1e-12)


@pytest.mark.parametrize("bound", reference.BOUNDS)
def test_b6_nearest_in_3d_runs_under_every_bound(bound: str) -> None:
    image = torch.randn(1, 1, 2, 3, 4, dtype=torch.float64, requires_grad=True)
    out = ops.pull(image, at(-1.2, 3.3, 4.4), 0, bound)
    assert out.item() == reference.pull(image, at(-1.2, 3.3, 4.4), 0, bound).item()
    out.sum().backward()
    np.testing.assert_array_equal(
        image.grad.numpy(), reference.push(np.ones((1, 1, 1, 1, 1)), at(-1.2, 3.3, 4.4), (2, 3, 4), 0, bound)
    )


def test_b7_nearest_backward_reads_channels_with_the_cotangents_stride() -> None:
    image = torch.zeros(1, 2, 1, 1, dtype=torch.float64, requires_grad=True)
    cotangent = f64([[10, 0], [20, 0]])[:, 0].view(1, 2, 1, 1)  # channel stride 2
    ops.pull(image, at(0, 0), 0).backward(cotangent)
    assert image.grad is not None and image.grad.flatten().tolist() == [10, 20]


def test_b8_the_last_pure_second_derivative_in_3d_is_in_its_place() -> None:
    coeff = torch.arange(7, dtype=torch.float64).square().expand(1, 1, 5, 6, 7)
    got = ops.hess(coeff, at(2.2, 2.7, 3.4), 3).reshape(3, 3)
    torch.testing.assert_close(got, torch.diag(f64([0, 0, 2])), rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [6, 20])
@pytest.mark.parametrize("bound", ["dct1", "zero", "replicate"])
@pytest.mark.parametrize("order", [3, 4, 5])
def test_b9_b14_filtered_samples_are_interpolated_to_the_last_digits(n: int, bound: str, order: int) -> None:
    line = torch.randn(1, 1, n, dtype=torch.float64)
    back = ops.pull(ops.prefilter(line, order, bound), ops.identity((n,), dtype=torch.float64), order, bound)
    assert (back - line).abs().max() <= 1e-12


@pytest.mark.parametrize(("bound", "order"), [("dct1", 3), ("replicate", 4), ("replicate", 7)])
def test_b10_the_adjoint_of_a_filter_that_is_not_symmetric(bound: str, order: int) -> None:
    x = torch.randn(1, 1, 8, dtype=torch.float64, requires_grad=True)
    y = torch.randn(1, 1, 8, dtype=torch.float64)
    (back,) = torch.autograd.grad(ops.prefilter(x, order, bound), x, y)
    matrix = reference.filter_matrix(8, order, bound)
    np.testing.assert_allclose(back[0, 0].numpy(), matrix.T @ y[0, 0].numpy(), rtol=0, atol=1e-12)
    assert np.abs(matrix - matrix.T).max() > 0.001


def test_b11_dst1_keeps_its_first_sample() -> None:
    image = f64([[[5, 6, 7]]])
    for order in (0, 1):
        got = ops.pull(image, ops.identity((3,), dtype=torch.float64), order, "dst1")
        assert got.flatten().tolist() == [5, 6, 7]


def test_b12_orders_mixed_with_one_keep_the_sign_of_the_slope() -> None:
    ramp = torch.arange(5, dtype=torch.float64)[:, None].expand(1, 1, 5, 6)
    torch.testing.assert_close(ops.grad(ramp, at(2.3, 2.0), [1, 3]).flatten(), f64([1, 0]))


def test_b13_nearest_with_a_mask_returns_values() -> None:
    image = torch.arange(20, dtype=torch.float64).reshape(1, 1, 4, 5)
    coords = f64([(1, 2), (3, 4), (-3, 1)]).T[None, :, :, None]
    assert ops.pull(image, coords, 0, extrapolate=False).flatten().tolist() == [7, 19, 0]


def test_b14_an_image_of_labels_is_refused_where_it_would_be_filtered_to_zeros() -> None:
    labels = torch.ones(1, 1, 5, 4, dtype=torch.int64)
    for run in (lambda: ops.prefilter(labels), lambda: ops.warp(labels, torch.zeros(1, 2, 5, 4), 3)):
        with pytest.raises(ValueError, match="int64"):
            run()
    assert torch.equal(ops.warp_labels(labels, torch.zeros(1, 2, 5, 4)), labels)


def test_b15_poles_are_held_in_double_precision() -> None:
    line = torch.randn(1, 1, 50, dtype=torch.float64)
    for order in range(2, 8):
        want = reference.prefilter(line, order, "dct2")
        assert reference.error(ops.prefilter(line, order, "dct2"), want, np.abs(want).max()) <= 1e-13


def test_b16_mixed_orders_use_each_its_own_spline() -> None:
    image = torch.zeros(1, 1, 3, 4, 7, dtype=torch.float64)
    image[..., 3] = 1
    assert ops.pull(image, at(1, 1, 3), [1, 1, 3]).item() == pytest.approx(2 / 3, rel=1e-14)


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_b17_the_gradient_of_grad_in_the_coordinates_does_not_depend_on_strides(ndim: int) -> None:
    coeff = torch.randn(1, 2, *(5, 4, 6)[:ndim], dtype=torch.float64)
    for points in (1, 3):
        x = torch.rand(1, ndim, points, *[1] * (ndim - 1), dtype=torch.float64, requires_grad=True)
        (got,) = torch.autograd.grad(ops.grad(coeff, x, 2).sum(), x)
        want = reference.hess(coeff, x, 2).sum((1, 2))
        np.testing.assert_allclose(got.numpy(), want, rtol=0, atol=1e-12)


def test_b18_grad_in_1d_writes_its_own_voxels_only() -> None:
    coeff = torch.randn(1, 1, 40)
    x = torch.linspace(-5, 45, 1001)[None, None]
    for extrapolate in (True, False):
        scale = reference.sample(coeff, x, 3, "dct2", extrapolate, degree=1, absolute=True)
        want = reference.grad(coeff, x, 3, "dct2", extrapolate)
        assert reference.error(ops.grad(coeff, x, 3, "dct2", extrapolate), want, scale) <= 1e-5


def test_b19_count_has_the_shape_it_is_asked_for() -> None:
    coords = torch.rand(2, 3, 5, 6, 7) * 3
    assert ops.count(coords, (3, 4, 5)).shape == (2, 1, 3, 4, 5)


def test_b20_batches_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="batch"):
        ops.pull(torch.zeros(2, 1, 4, 4), torch.zeros(3, 2, 4, 4))


def test_b21_slopes_have_a_sign_in_every_dimension() -> None:
    falling = -2 * torch.arange(9, dtype=torch.float64)
    for ndim in (1, 2, 3):
        image = falling.reshape(-1, *[1] * (ndim - 1)).expand(1, 1, 9, *(3, 4)[: ndim - 1])
        for order in range(1, 6):  # in the middle no tap leaves the ramp, whose spline is itself
            got = ops.grad(image, at(4.2, 1.3, 2.1)[:, :ndim].reshape(1, ndim, *[1] * ndim), order)
            torch.testing.assert_close(got.flatten(), f64([-2, 0, 0][:ndim]), rtol=0, atol=1e-13)


@pytest.mark.parametrize("n", [3, 6])
def test_b22_short_reflected_lines_start_from_samples_not_yet_overwritten(n: int) -> None:
    line = torch.arange(1, n + 1, dtype=torch.float64).square()[None, None]
    coeff = ops.prefilter(line, 3, "dct2")
    beta = torch.tensor([1, 4, 1], dtype=torch.float64) / 6
    mirrored = torch.cat([coeff[..., :1], coeff, coeff[..., -1:]], -1)  # dct2: the outer voxel once more
    torch.testing.assert_close((mirrored.unfold(-1, 3, 1) * beta).sum(-1), line, rtol=1e-14, atol=0)


@pytest.mark.parametrize("bound", reference.BOUNDS)
@pytest.mark.parametrize("order", range(8))
def test_b23_axes_of_one_sample_follow_the_definition(bound: str, order: int) -> None:
    coeff = f64([[[3.0]]])
    x = torch.linspace(-3.3, 3.4, 30, dtype=torch.float64)[None, None]
    np.testing.assert_allclose(
        ops.pull(coeff, x, order, bound).numpy(), reference.pull(coeff, x, order, bound), rtol=0, atol=1e-12
    )


def test_b24_quadratic_splines_do_not_jump_at_the_half_integers() -> None:
    coeff = torch.randn(1, 1, 6, dtype=torch.float64)
    half = torch.arange(-3, 9, dtype=torch.float64)[None, None] + 0.5
    torch.testing.assert_close(ops.pull(coeff, half, 2), ops.pull(coeff, half - 1e-13, 2), rtol=0, atol=1e-11)


def test_c7_coefficients_replicated_far_outside_are_the_edge_sample() -> None:
    got = ops.pull(f64([[[1, 2, 4]]]), f64([[[5.3, -3.7]]]), 3, "replicate")
    torch.testing.assert_close(got.flatten(), f64([4, 1]), rtol=1e-15, atol=0)


@pytest.mark.parametrize("bound", reference.BOUNDS)
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_c10_the_gradient_of_grad_is_a_finite_difference(ndim: int, order: int, bound: str) -> None:
    random = np.random.default_rng(order)
    image = torch.from_numpy(random.standard_normal((1, 1, *(3, 4, 5)[:ndim]))).requires_grad_()
    coords = off_knots(random, (1, ndim, 3, *[1] * (ndim - 1)), -4, 8).requires_grad_()
    assert gradcheck(lambda image, coords: ops.grad(image, coords, order, bound), (image, coords), **CHECK)


@pytest.mark.parametrize(
    ("bound", "values"),
    [("dct1", (0.7042, -1.538, -2.12)), ("dct2", (0.70525, -1.41, -1.65)), ("dft", (0.73675, -1.5075, -2.55))],
)
def test_c11_second_derivatives_by_autograd_are_right(bound: str, values: tuple[float, ...]) -> None:
    x = f64([[[1.3]]]).requires_grad_()
    y = ops.pull(ops.prefilter(f64([[[0, 1, 0, 2]]]), 3, bound), x, 3, bound)
    for want in values:
        assert y.item() == pytest.approx(want, abs=1e-12)
        (y,) = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)


def test_c18_a_nan_sample_reaches_every_sample_with_a_tap_there_and_no_other() -> None:
    image = f64([[[1, float("nan"), 3, 4, 5]]])
    got = ops.pull(image, f64([[[0, 0.5, 1.5, 2, 3.5]]]), 1)  # at 0 the tap of weight 0 to the right counts
    assert got.isnan().flatten().tolist() == [True, True, True, False, False]


def test_c19_simpleitks_cubic_is_dct1() -> None:
    sitk = pytest.importorskip("SimpleITK")
    image = np.random.default_rng(0).standard_normal((9, 8))
    shift = sitk.TranslationTransform(2, (0.3, 0.6))  # x runs along the last axis
    moved = sitk.Resample(sitk.GetImageFromArray(image), shift, sitk.sitkBSpline, 0.0, sitk.sitkFloat64)
    flow = f64([0.6, 0.3]).reshape(1, 2, 1, 1).expand(1, 2, 9, 8)
    want = torch.from_numpy(sitk.GetArrayFromImage(moved))[:-1, :-1]  # beyond the buffer ITK has its default value
    apart = {
        bound: (ops.warp(f64(image)[None, None], flow, 3, bound)[0, 0, :-1, :-1] - want).abs().max()
        for bound in ("dct1", "dct2")
    }
    assert apart["dct1"] <= 1e-12 and apart["dct2"] > 0.01
