"""Operators on displacement fields and grids: closed forms, and the oracle's dense sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from regnet import ops
from tests import reference
from tests.ops.cases import CHECK, DTYPES, LAYOUTS, laid_out, off_knots

SHAPES = [(9,), (5, 6), (4, 5, 3)]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def f64(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def constant(vector: tuple[float, ...], shape: tuple[int, ...]) -> Tensor:
    return f64(vector).reshape(1, -1, *[1] * len(shape)).expand(1, -1, *shape)


def random_flow(shape: tuple[int, ...], batch: int = 2, reach: float = 2.0) -> Tensor:
    """Off the knots: positions ``p + flow(p)`` stay 0.1 away from integers and half-integers."""
    return off_knots(np.random.default_rng(len(shape)), (batch, len(shape), *shape), -reach, reach)


def close(got: Tensor, want: Any, tolerance: float = 1e-11) -> None:
    np.testing.assert_allclose(got.detach().numpy(), reference.array(want), rtol=0, atol=tolerance)


# identity and warp


@every_shape
def test_identity_holds_every_voxels_own_coordinates(shape: tuple[int, ...]) -> None:
    for dtype in DTYPES:
        grid = ops.identity(shape, dtype=dtype)
        assert grid.dtype == dtype and grid.shape == (1, len(shape), *shape)
        assert torch.equal(grid.double(), torch.from_numpy(reference.identity(shape)))
    assert ops.identity(shape).dtype == torch.float32


@pytest.mark.parametrize("size", [(1, 1, 4, 4), (1, 1, 5, 7), (1, 1, 33, 34, 35), (2, 3, 17)], ids=str)
@pytest.mark.parametrize("bound", reference.BOUNDS)
def test_c2_zero_displacement_is_the_identity_bit_for_bit(size: tuple[int, ...], bound: str) -> None:
    image = torch.randn(size)
    flow = torch.zeros(size[0], len(size) - 2, *size[2:])
    for order in (0, 1):
        assert torch.equal(ops.warp(image, flow, order, bound), image)
    assert (ops.warp(image, flow, 3, bound) - image).abs().max() < 2e-6 * image.abs().max()


def test_c3_the_first_component_moves_along_the_first_axis() -> None:
    image = (10 * torch.arange(4.0)[:, None] + torch.arange(6.0))[None, None]
    flow = torch.zeros(1, 2, 4, 6)
    flow[:, 0] = 1
    out = ops.warp(image, flow, 1, "replicate")[0, 0]
    assert [out[0, 0], out[2, 5], out[3, 5]] == [10, 35, 35]


@pytest.mark.parametrize("size", [(1, 1, 1, 4, 4), (1, 1, 1, 5), (1, 1, 5, 1), (1, 1, 1), (2, 2, 3, 1, 1)], ids=str)
@pytest.mark.parametrize("bound", reference.BOUNDS)
def test_c4_an_axis_of_one_voxel_is_an_axis_like_any_other(size: tuple[int, ...], bound: str) -> None:
    image = torch.ones(size, dtype=torch.float64, requires_grad=True)
    flow = torch.zeros(size[0], len(size) - 2, *size[2:], dtype=torch.float64, requires_grad=True)
    for order in (1, 3):
        out = ops.warp(image, flow, order, bound)
        close(out, image.detach(), 1e-12 if order > 1 else 0)
        for gradient in torch.autograd.grad(out.sum(), (image, flow)):
            assert gradient.isfinite().all()


def test_c5_a_zero_bound_blends_and_a_replicated_one_does_not() -> None:
    image, half = torch.full((1, 1, 2, 2, 2), 0.5), torch.full((1, 3, 2, 2, 2), 0.5)
    want = torch.tensor([[[0.5, 0.25], [0.25, 0.125]], [[0.25, 0.125], [0.125, 0.0625]]])
    assert torch.equal(ops.warp(image, half, 1, "zero")[0, 0], want)
    assert torch.equal(ops.warp(image, half, 1, "replicate"), image)
    line, x = torch.tensor([[[2.0, 4.0]]]), torch.tensor([[[-0.25]]])
    assert ops.pull(line, x, 1, "zero").item() == 1.5
    assert ops.pull(line, x, 1, "replicate").item() == 2.0
    assert ops.pull(line, x, 1, "replicate", extrapolate="edge").item() == 2.0
    assert ops.pull(line, x, 1, "replicate", extrapolate=False).item() == 0.0


@every_shape
@pytest.mark.parametrize("order", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("extrapolate", [True, "center", "edge"])
def test_warp_is_pull_at_identity_plus_flow(shape: tuple[int, ...], order: int, extrapolate: bool | str) -> None:
    bound = reference.BOUNDS[(order + len(shape)) % 7]
    for dtype, tolerance in ((torch.float32, 2e-5), (torch.float64, 1e-12)):
        image, flow = torch.randn(2, 3, *shape, dtype=dtype), random_flow(shape).to(dtype)
        out = ops.warp(image, flow, order, bound, extrapolate)
        coords = ops.identity(shape, dtype=dtype) + flow
        pulled = ops.pull(ops.prefilter(image, order, bound), coords, order, bound, extrapolate)
        torch.testing.assert_close(out, pulled, rtol=tolerance, atol=tolerance)
        close(out, reference.warp(image, flow, order, bound, extrapolate), 10 * tolerance)


def test_warp_mixes_orders_and_bounds_per_axis() -> None:
    image, flow = torch.randn(2, 2, 4, 5, 3, dtype=torch.float64), random_flow((4, 5, 3))
    order, bound = [3, 0, 6], ["dst1", "zero", "replicate"]
    close(ops.warp(image, flow, order, bound), reference.warp(image, flow, order, bound))


def test_warp_samples_the_image_on_the_grid_of_the_flow() -> None:
    image, flow = torch.randn(2, 3, 7, 4, dtype=torch.float64), random_flow((5, 9))
    assert ops.warp(image, flow).shape == (2, 3, 5, 9)
    close(ops.warp(image, flow), reference.warp(image, flow))


def affine(ndim: int, batch: int) -> Tensor:
    random = torch.Generator().manual_seed(ndim)
    turn = torch.eye(ndim, ndim + 1, dtype=torch.float64)
    return turn + 0.2 * torch.randn(batch, ndim, ndim + 1, dtype=torch.float64, generator=random)


@every_shape
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("order", [1, 3])
def test_warp_applies_the_matrix_after_the_flow(shape: tuple[int, ...], batch: int, order: int) -> None:
    image, flow = torch.randn(2, 2, *[n + 1 for n in shape], dtype=torch.float64), random_flow(shape)
    matrix = affine(len(shape), batch)
    out = ops.warp(image, flow, order, "dct1", "edge", matrix)
    close(out, reference.warp(image, flow, order, "dct1", "edge", matrix))


@every_shape
@pytest.mark.parametrize("order", [1, 3])
def test_gradients_of_warp_are_finite_differences_also_in_the_matrix(shape: tuple[int, ...], order: int) -> None:
    small = tuple(min(n, 3) for n in shape)
    image = torch.randn(2, 1, *small, dtype=torch.float64, requires_grad=True)
    flow = random_flow(small).requires_grad_()
    matrix = affine(len(shape), 1).requires_grad_()
    assert gradcheck(lambda i, f: ops.warp(i, f, order, "dct1"), (image, flow), **CHECK)
    assert gradcheck(lambda i, f, m: ops.warp(i, f, order, "dct2", matrix=m), (image, flow, matrix), **CHECK)
    few = flow[:1, ..., :1].detach().requires_grad_()
    assert gradgradcheck(lambda i, f, m: ops.warp(i, f, order, matrix=m), (image[:1], few, matrix), **CHECK)


def test_the_gradient_of_a_matrix_per_sample_is_not_summed_over_the_batch() -> None:
    image, flow = torch.randn(2, 1, 3, 4, dtype=torch.float64), random_flow((3, 4))
    matrix = affine(2, 2).requires_grad_()
    assert gradcheck(lambda m: ops.warp(image, flow, 3, matrix=m), (matrix,), **CHECK)


def test_two_rotations_compose_as_their_matrices_do() -> None:
    image, still = torch.zeros(1, 1, 5, 5, 5, dtype=torch.float64), torch.zeros(1, 3, 5, 5, 5, dtype=torch.float64)
    image[0, 0, 3, 2, 2] = 1
    a, b = f64([[0, -1, 0], [1, 0, 0], [0, 0, 1]]), f64([[1, 0, 0], [0, 0, -1], [0, 1, 0]])

    def about_centre(m: Tensor) -> Tensor:
        centre = f64([2, 2, 2])
        return torch.cat([m, (centre - m @ centre)[:, None]], 1)[None]

    def peak(x: Tensor) -> list[int]:
        return [int(i) for i in np.unravel_index(int(x.argmax()), x.shape[2:])]

    twice = ops.warp(ops.warp(image, still, matrix=about_centre(a)), still, matrix=about_centre(b))
    once = ops.warp(image, still, matrix=about_centre(a @ b))
    assert peak(twice) == peak(once) == [2, 2, 3]
    assert peak(ops.warp(image, still, matrix=about_centre(b @ a))) == [2, 1, 2]
    grid = ops.identity((5, 5, 5), dtype=torch.float64)
    flow_a, flow_b = (torch.einsum("ij,njxyz->nixyz", m - torch.eye(3).double(), grid - 2) for m in (a, b))
    assert peak(ops.warp(image, ops.compose(flow_a, flow_b, bound="replicate"))) == [2, 2, 3]


# labels


def drawn_labels(shape: tuple[int, ...], dtype: torch.dtype = torch.int32) -> Tensor:
    random = torch.Generator().manual_seed(0)
    return torch.randint(0, 5, (2, 1, *shape), generator=random).mul(3).to(dtype)


@every_shape
@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64], ids=str)
def test_labels_are_the_arg_max_of_warped_one_hots_or_the_nearest(
    shape: tuple[int, ...], mode: str, dtype: torch.dtype
) -> None:
    labels, flow = drawn_labels(shape, dtype), random_flow(shape, reach=3.0)
    out = ops.warp_labels(labels, flow, mode, background=7)
    assert out.dtype == dtype
    assert np.array_equal(out.numpy(), reference.warp_labels(labels, flow, mode, background=7))


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_labels_are_warped_through_a_matrix(mode: str) -> None:
    labels, flow, matrix = drawn_labels((6, 5, 4)), random_flow((4, 5, 3)), affine(3, 1)
    out = ops.warp_labels(labels, flow, mode, matrix=matrix)
    assert np.array_equal(out.numpy(), reference.warp_labels(labels, flow, mode, matrix=matrix))


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_large_label_numbers_stay_exact(mode: str) -> None:
    labels = torch.tensor([2**40 + 1, 2**40 + 3, -5, 0]).reshape(1, 1, 4)
    assert torch.equal(ops.warp_labels(labels, torch.zeros(1, 1, 4), mode), labels)
    shifted = ops.warp_labels(labels, torch.full((1, 1, 4), 0.75), mode)
    assert shifted.flatten().tolist() == [2**40 + 3, -5, 0, 0]
    ends = torch.tensor([2**63 - 1, 2**53 + 1, -(2**63), 2**63 - 2]).reshape(1, 1, 4)
    assert torch.equal(ops.warp_labels(ends, torch.zeros(1, 1, 4), mode, background=-7), ends)
    away = ops.warp_labels(ends, torch.full((1, 1, 4), 2.0), mode, background=2**62 + 1)
    assert away.flatten().tolist() == [-(2**63), 2**63 - 2, 2**62 + 1, 2**62 + 1]


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_labels_outside_the_view_are_background(mode: str) -> None:
    labels = torch.full((1, 1, 2, 3), 4, dtype=torch.int16)
    flow = torch.zeros(1, 2, 2, 3)
    flow[0, 0, 0] = torch.tensor([-0.5, -0.6, float("inf")])
    flow[0, 1, 1] = torch.tensor([float("nan"), 1.5, 1e30])
    assert ops.warp_labels(labels, flow, mode, background=9)[0, 0].tolist() == [[4, 9, 9], [9, 4, 9]]


# compose, integrate, invert


@every_shape
@pytest.mark.parametrize("order", [1, 3])
def test_compose_samples_the_outer_field_where_the_inner_one_points(shape: tuple[int, ...], order: int) -> None:
    outer, inner = torch.randn(2, len(shape), *shape, dtype=torch.float64), random_flow(shape)
    close(ops.compose(outer, inner, order, "dct1"), reference.compose(outer, inner, order, "dct1"))


def test_c21_warping_twice_is_warping_by_the_composed_field() -> None:
    ramp = torch.arange(16, dtype=torch.float64)[None, None]
    one = torch.ones_like(ramp)
    for u, v, w, value in ((one, ramp, ramp + 1, 7), (ramp, one, ramp + 2, 8)):
        composed = ops.compose(u, v, bound="replicate")
        assert composed[0, 0, 3].item() == w[0, 0, 3].item()
        assert ops.warp(ramp, composed)[0, 0, 3].item() == value
        assert ops.warp(ops.warp(ramp, u), v)[0, 0, 3].item() == value


def test_c24_the_error_of_integration_falls_with_every_squaring() -> None:
    x = torch.arange(41, dtype=torch.float64)[None, None]
    velocity = math.log(1.5) * (x - 20)
    want = {0: 1.62186, 2: 1.88555, 4: 1.96976, 6: 1.99233, 8: 1.99808, 10: 1.99952}
    for steps, value in want.items():
        assert ops.integrate(velocity, steps)[0, 0, 24].item() == pytest.approx(value, abs=6e-6)
    assert torch.equal(ops.integrate(velocity, 0), velocity)


@every_shape
@pytest.mark.parametrize("order", [1, 3])
@pytest.mark.parametrize("bound", ["dct2", "replicate", "dft"])
def test_integrate_is_repeated_composition(shape: tuple[int, ...], order: int, bound: str) -> None:
    velocity = torch.randn(2, len(shape), *shape, dtype=torch.float64)
    close(ops.integrate(velocity, 3, order, bound), reference.integrate(velocity, 3, order, bound), 1e-10)


def test_a_constant_velocity_is_its_own_displacement() -> None:
    velocity = constant((1.25, -0.5, 3.0), (5, 4, 6))
    close(ops.integrate(velocity), velocity, 1e-12)


@every_shape
@pytest.mark.parametrize("order", [1, 3])
def test_gradients_of_integrate_and_compose_are_finite_differences(shape: tuple[int, ...], order: int) -> None:
    small = tuple(min(n, 3) for n in shape)
    random = np.random.default_rng(1)
    velocity = torch.from_numpy(random.standard_normal((1, len(small), *small))).requires_grad_()
    inner = random_flow(small, batch=1).requires_grad_()
    assert gradcheck(lambda v: ops.integrate(v, 3, order), (velocity,), **CHECK)
    assert gradcheck(lambda u, v: ops.compose(u, v, order, "dct1"), (velocity, inner), **CHECK)


def test_second_derivatives_of_integrate_are_finite_differences() -> None:
    velocity = torch.randn(1, 2, 3, 2, dtype=torch.float64, requires_grad=True)
    assert gradgradcheck(lambda v: ops.integrate(v, 2, 3), (velocity,), **CHECK)


def swirl(shape: tuple[int, ...], reach: float = 1.5) -> Tensor:
    """A smooth field that vanishes on the faces, so that what lies outside does not matter."""
    grid = ops.identity(shape, dtype=torch.float64)
    bump = torch.ones(1, 1, *shape, dtype=torch.float64)
    for d, n in enumerate(shape):
        bump = bump * torch.sin(math.pi * grid[:, d : d + 1] / (n - 1))
    return bump * reach * torch.cos(grid / 5 + torch.arange(len(shape)).reshape(1, -1, *[1] * len(shape)))


@pytest.mark.parametrize("shape", [(20,), (17, 20), (12, 15, 13)], ids=str)
def test_the_inverse_undoes_the_field(shape: tuple[int, ...]) -> None:
    flow = swirl(shape)
    inverse = ops.invert(flow, 50, 1e-6)
    close(inverse + ops.warp(flow, inverse), torch.zeros_like(flow), 1e-5)
    close(ops.compose(flow, inverse), torch.zeros_like(flow), 1e-5)
    coarse = ops.invert(flow)
    assert (coarse + ops.warp(flow, coarse)).abs().max() < 2e-3
    assert ops.invert(flow.float()).dtype == torch.float32


def test_the_inverse_of_a_translation_is_the_opposite_translation() -> None:
    flow = constant((1.5, -2.25), (6, 7))
    close(ops.invert(flow), -flow, 1e-12)


@pytest.mark.parametrize("factor", [-0.9, 0.5, 1.5, 4.0])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_steep_fields_are_inverted_as_long_as_they_do_not_fold(ndim: int, factor: float) -> None:
    """u = f (p - c) takes p to c + (1 + f) (p - c); its inverse is v = -f / (1 + f) (p - c), where that is in view."""
    shape = (17, 12, 9)[:ndim]
    centre = torch.tensor([(n - 1) / 2 for n in shape], dtype=torch.float64).view(1, ndim, *[1] * ndim)
    offset = ops.identity(shape, dtype=torch.float64) - centre
    inverse = ops.invert(factor * offset, tolerance=1e-8)
    inside = ((offset / (1 + factor)).abs() <= centre).all(1, keepdim=True)
    close(torch.where(inside, inverse, 0.0), torch.where(inside, -factor / (1 + factor) * offset, 0.0), 1e-8)


def test_a_rotation_by_a_right_angle_is_inverted() -> None:
    """Its slope is no contraction: p -> c + R (p - c), with u = (R - 1)(p - c) and v = (R^T - 1)(p - c).

    A corner has a second origin outside the grid, where the field goes on as it was at the border.
    """
    offset = ops.identity((9, 9), dtype=torch.float64) - 4
    turned = torch.cat([-offset[:, 1:], offset[:, :1]], 1)
    inverse = ops.invert(turned - offset, tolerance=1e-8)
    close(inverse[..., 1:-1, 1:-1], (-turned - offset)[..., 1:-1, 1:-1], 1e-8)


def test_a_folding_field_is_told_and_the_rest_of_it_inverted() -> None:
    x = ops.identity((40,), dtype=torch.float64)
    flow = 6 * torch.exp(-(((x - 20) / 2) ** 2))
    with pytest.warns(RuntimeWarning, match=r"of the voxels have no inverse .* the field folds there"):
        inverse = ops.invert(flow)
    missing = (inverse + ops.warp(flow, inverse, bound="replicate")).abs()
    assert inverse.isfinite().all() and missing[..., :12].max() < 1e-3 and missing[..., 30:].max() < 1e-3


def test_derivatives_of_the_inverse_are_finite_differences() -> None:
    """Also where the iterations stopped early: the last two steps make up for it."""
    flow = (swirl((5, 6)) + 0.05 * torch.randn(2, 2, 5, 6, dtype=torch.float64)).requires_grad_()
    for order in (1, 3):
        assert gradcheck(lambda u, o=order: ops.invert(u, 50, 1e-4, o), (flow,), check_forward_ad=True, **CHECK)
        assert gradgradcheck(lambda u, o=order: ops.invert(u, 50, 1e-4, o), (flow,), check_fwd_over_rev=True, **CHECK)


# jacobian


@pytest.mark.parametrize("shape", [(6,), (5, 6), (4, 5, 3), (4, 1, 2), (1, 1, 3)], ids=str)
def test_the_jacobian_is_central_inside_and_one_sided_on_faces(shape: tuple[int, ...]) -> None:
    flow = torch.randn(2, len(shape), *shape, dtype=torch.float64)
    close(ops.jacobian(flow), reference.jacobian(flow))
    close(ops.jacobian_determinant(flow), reference.jacobian_determinant(flow))
    for layout in LAYOUTS:
        given = laid_out(flow.float(), layout)
        close(ops.jacobian_determinant(given), reference.jacobian_determinant(given), 1e-4)


@pytest.mark.parametrize(
    ("field", "determinant"),
    [
        (lambda p: torch.zeros_like(p), 1.0),
        (lambda p: 0.5 * p, None),
        (lambda p: torch.cat([-2 * p[:, :1], 0 * p[:, 1:]], 1), -1.0),
        (lambda p: torch.cat([0.3 * p[:, 1:2], 0 * p[:, 1:]], 1), 1.0),
        (lambda p: torch.cat([p[:, 1:2] - p[:, :1], p[:, :1] - p[:, 1:2], 0 * p[:, 2:]], 1), -1.0),
    ],
    ids=["zero", "growth", "reflection", "shear", "folding"],
)
@pytest.mark.parametrize("ndim", [2, 3])
def test_c25_determinants_of_linear_maps(
    field: Callable[[Tensor], Tensor], determinant: float | None, ndim: int
) -> None:
    flow = field(ops.identity((6, 5, 7)[:ndim], dtype=torch.float64))
    want = 1.5**ndim if determinant is None else determinant
    close(ops.jacobian_determinant(flow), np.full((1, 1, *flow.shape[2:]), want), 1e-12)


def test_c26_where_the_moving_structure_is_enlarged_the_determinant_is_below_one() -> None:
    p = ops.identity((20, 21, 22), dtype=torch.float64)
    flow = (p - 10) / 1.5 - (p - 10)
    determinant = ops.jacobian_determinant(flow)
    close(determinant, np.full(determinant.shape, 1.5**-3), 1e-12)
    assert determinant.log().mean().item() == pytest.approx(-1.216, abs=1e-3)


@every_shape
def test_gradients_of_the_jacobian_are_finite_differences(shape: tuple[int, ...]) -> None:
    flow = torch.randn(1, len(shape), *[min(n, 3) for n in shape], dtype=torch.float64, requires_grad=True)
    assert gradcheck(ops.jacobian, (flow,), **CHECK)
    assert gradcheck(ops.jacobian_determinant, (flow,), **CHECK)
    assert gradgradcheck(ops.jacobian_determinant, (flow,), **CHECK)


# box sums


@pytest.mark.parametrize("shape", [(11,), (7, 9), (6, 5, 8), (1, 3, 1)], ids=str)
@pytest.mark.parametrize("window", [1, 3, 5, 23])
def test_box_sum_adds_up_the_window(shape: tuple[int, ...], window: int) -> None:
    for dtype, tolerance in ((torch.float32, 1e-4), (torch.float64, 1e-12)):
        for layout in LAYOUTS:
            image = laid_out(torch.randn(2, 3, *shape, dtype=dtype), layout)
            got = ops.box_sum(image, window)
            assert got.dtype == dtype
            close(got, reference.box_sum(image, window), tolerance)


def test_box_sum_takes_a_window_per_axis_and_is_its_own_adjoint() -> None:
    x, y = (torch.randn(2, 2, 7, 6, 5, dtype=torch.float64, requires_grad=True) for _ in range(2))
    window = (3, 1, 5)
    close(ops.box_sum(x, window), reference.box_sum(x, window))
    summed = ops.box_sum(x, window)
    (back,) = torch.autograd.grad(summed, x, y)
    close(back, reference.box_sum(y, window))
    small = torch.randn(1, 1, 3, 4, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: ops.box_sum(x, 3), (small,), check_forward_ad=True, **CHECK)
    assert gradgradcheck(lambda x: ops.box_sum(x, 3).square(), (small,), **CHECK)


def test_box_sum_keeps_its_precision_after_large_values() -> None:
    image = torch.ones(1, 1, 4, 300)
    image[..., :20] = 1e6
    got = ops.box_sum(image, 5)[0, 0, 2:, 30:-2]
    assert (got - torch.tensor([20.0, 15.0])[:, None]).abs().max() < 1e-3


@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.uint16, torch.uint32, torch.uint64])
def test_labels_of_every_integer_type_keep_it(dtype: torch.dtype, mode: str) -> None:
    high = {torch.uint16: 2**16 - 1, torch.uint32: 2**32 - 1, torch.uint64: 2**63 - 1}.get(dtype, 1)
    labels = torch.tensor([0, high, 0, 1]).to(dtype).reshape(1, 1, 4)
    out = ops.warp_labels(labels, torch.ones(1, 1, 4), mode)
    assert out.dtype == dtype and out.flatten().tolist() == [high, 0, 1, 0]


def test_a_thousand_squarings_of_nothing_are_nothing() -> None:
    assert not ops.integrate(torch.zeros(1, 2, 3, 4), steps=1100).any()


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_infinite_displacements_are_out_of_view_under_a_matrix_too(ndim: int) -> None:
    """A product 0 * inf is no number: an infinite coordinate gives 0 and NaN gives NaN, and neither has a gradient."""
    image = torch.rand(1, 2, *(4, 5, 6)[:ndim], dtype=torch.float64)
    flow = torch.zeros(1, ndim, *(3, 4, 2)[:ndim], dtype=torch.float64)
    first = (0,) * (ndim + 1)
    last = (0, ndim - 1) + (-1,) * ndim
    flow[(0, *first)] = math.inf
    flow[last] = math.nan
    matrix = torch.eye(ndim, ndim + 1, dtype=torch.float64)[None].requires_grad_()
    out = ops.warp(image, flow.requires_grad_(), matrix=matrix)
    assert (out[(0, slice(None)) + (0,) * ndim] == 0).all()
    assert out[(0, slice(None)) + (-1,) * ndim].isnan().all()
    gradients = torch.autograd.grad(out, (flow, matrix), torch.ones_like(out))
    assert all(g.isfinite().all() for g in gradients)
    assert gradients[0][(0, *first)] == 0 and gradients[0][last] == 0
