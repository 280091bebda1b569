"""identity, warp, compose and integrate: closed forms, and the oracle's dense sums."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from regnet import ops
from tests import reference
from tests.ops.cases import CHECK, DTYPES, LAYOUTS, close, constant, f64, laid_out, off_knots

SHAPES = [(9,), (5, 6), (4, 5, 3)]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def random_flow(shape: tuple[int, ...], batch: int = 2, reach: float = 2.0) -> Tensor:
    """Off the knots: positions ``p + flow(p)`` stay 0.1 away from integers and half-integers."""
    return off_knots(np.random.default_rng(len(shape)), (batch, len(shape), *shape), -reach, reach)


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


@pytest.mark.parametrize("order", [1, 3])
def test_warp_takes_any_strides(order: int) -> None:
    image, flow, matrix = torch.randn(2, 3, 4, 5, 6), random_flow((4, 3, 5)).float(), affine(3, 2).float()
    for one, other in itertools.product(LAYOUTS[:-1], LAYOUTS[:-1]):
        given = laid_out(image, one), laid_out(flow, other)
        assert torch.equal(
            ops.warp(*given, order, matrix=laid_out(matrix, one)), ops.warp(image, flow, order, matrix=matrix)
        )
    wide = image[:1, :1].expand_as(image), flow[:1, :1].expand_as(flow), matrix[:1].expand_as(matrix)
    dense = [x.contiguous() for x in wide]
    assert torch.equal(ops.warp(*wide[:2], order, matrix=wide[2]), ops.warp(*dense[:2], order, matrix=dense[2]))


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


def test_a_thousand_squarings_of_nothing_are_nothing() -> None:
    assert not ops.integrate(torch.zeros(1, 2, 3, 4), steps=1100).any()
