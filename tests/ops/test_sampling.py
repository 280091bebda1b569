"""pull, push, count, grad and hess against the dense sums, their adjoints, and finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from regnet import ops
from tests import reference
from tests.ops.cases import CHECK, DTYPES, LAYOUTS, Case, drawn, laid_out, off_knots, product, roomy, smallest

CASES = smallest() + roomy() + drawn(200, seed=2)


def leaf(x: Tensor) -> Tensor:
    return x.detach().requires_grad_()


def check_pull(case: Case) -> None:
    coeff, coords, cotangent = leaf(case.coeff()), case.coords(), case.value()
    coords.requires_grad_(min(case.orders) > 0)
    out = ops.pull(coeff, coords, *case.options)
    assert out.dtype == coeff.dtype
    scale = reference.sample(coeff, coords, *case.options, absolute=True)
    assert reference.error(out, reference.pull(coeff, coords, *case.options), scale) <= case.tolerance(out.dtype)
    out.backward(cotangent)
    check_scatter(case, coeff.grad, cotangent, coords, 0)
    if coords.requires_grad:
        check_coords_gradient(case, coords, coeff, cotangent, 1)


def check_push(case: Case) -> None:
    value, coords, cotangent = leaf(case.value()), case.coords(), case.coeff()
    coords.requires_grad_(min(case.orders) > 0)
    out = ops.push(value, coords, case.shape, *case.options)
    check_scatter(case, out, value, coords, 0)
    out.backward(cotangent)
    scale = reference.sample(cotangent, coords, *case.options, absolute=True)
    want = reference.pull(cotangent, coords, *case.options)
    assert value.grad is not None
    assert reference.error(value.grad, want, scale) <= case.tolerance(value.dtype)
    if coords.requires_grad:
        check_coords_gradient(case, coords, cotangent, value, 1)


def check_count(case: Case) -> None:
    coords = case.coords().requires_grad_(min(case.orders) > 0)
    out = ops.count(coords, case.shape, *case.options)
    assert out.dtype == coords.dtype
    want = reference.count(coords, case.shape, *case.options)
    ones = np.ones((case.batch, 1, *case.out))
    scale = reference.scatter(ones, coords, case.shape, *case.options, absolute=True)
    tolerance = 1e-12 if coords.dtype == torch.float64 else 1e-5
    assert reference.error(out, want, scale) <= tolerance
    if coords.requires_grad:
        cotangent = case.coeff()[:, :1].to(coords.dtype)
        out.backward(cotangent)
        scale = reference.sample(cotangent, coords, *case.options, degree=1, absolute=True)[:, 0]
        assert coords.grad is not None
        assert reference.error(coords.grad, reference.grad(cotangent, coords, *case.options)[:, 0], scale) <= tolerance


def check_derivative(case: Case, degree: int) -> None:
    op = (ops.grad, ops.hess)[degree - 1]
    coeff, coords = leaf(case.coeff()), leaf(case.coords())
    cotangent = case.value(*[case.ndim] * degree)
    out = op(coeff, coords, *case.options)
    assert out.dtype == coeff.dtype
    scale = reference.sample(coeff, coords, *case.options, degree=degree, absolute=True)
    want = reference.sample(coeff, coords, *case.options, degree=degree)
    assert reference.error(out, want, scale) <= case.tolerance(out.dtype)
    out.backward(cotangent)
    check_scatter(case, coeff.grad, cotangent, coords, degree)
    check_coords_gradient(case, coords, coeff, cotangent, degree + 1)


def check_scatter(case: Case, got: Tensor | None, value: Tensor, coords: Tensor, degree: int) -> None:
    """``got`` is what ``value`` scatters."""
    assert got is not None and got.dtype == value.dtype
    scale = reference.scatter(value, coords, case.shape, *case.options, degree=degree, absolute=True)
    want = reference.scatter(value, coords, case.shape, *case.options, degree=degree)
    assert reference.error(got, want, scale) <= case.tolerance(got.dtype)


def check_coords_gradient(case: Case, coords: Tensor, coeff: Tensor, value: Tensor, degree: int) -> None:
    """``coords.grad`` contracts ``value`` with the derivatives one degree up."""
    assert coords.grad is not None and coords.grad.dtype == coords.dtype
    weight = reference.array(value).reshape(case.batch, case.channels, -1, 1, *case.out)
    size = (case.batch, case.channels, -1, case.ndim, *case.out)
    up = reference.sample(coeff, coords, *case.options, degree=degree)
    scale = reference.sample(coeff, coords, *case.options, degree=degree, absolute=True)
    want = (weight * up.reshape(size)).sum((1, 2))
    bounded = (np.abs(weight) * scale.reshape(size)).sum((1, 2))
    assert reference.error(coords.grad, want, bounded) <= case.tolerance(coords.dtype)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_pull_push_and_count_and_their_gradients_equal_the_dense_sums(case: Case) -> None:
    check_pull(case)
    check_push(case)
    check_count(case)


@pytest.mark.parametrize("case", [case for case in CASES if min(case.orders) > 0], ids=str)
def test_grad_and_hess_and_their_gradients_equal_the_dense_sums(case: Case) -> None:
    check_derivative(case, 1)
    check_derivative(case, 2)


@pytest.mark.exhaustive
def test_the_full_product_of_cases_equals_the_dense_sums() -> None:
    for case in product():
        try:
            check_pull(case)
            check_push(case)
            check_count(case)
            for degree in (1, 2) if min(case.orders) > 0 else ():
                check_derivative(case, degree)
        except Exception as error:
            raise AssertionError(f"{case}: {case!r}") from error


@pytest.mark.parametrize("case", drawn(60, seed=3), ids=str)
def test_push_and_the_gradient_of_pull_are_the_adjoint_of_pull(case: Case) -> None:
    coeff, coords, value = leaf(case.coeff().double()), case.coords().double(), case.value().double()
    pulled = ops.pull(coeff, coords, *case.options)
    (backward,) = torch.autograd.grad(pulled, coeff, value)
    pushed = ops.push(value, coords, case.shape, *case.options)
    inner = (pulled * value).sum()
    bound = 1e-13 * pulled.norm() * value.norm()
    assert (inner - (coeff * pushed).sum()).abs() <= bound
    assert (inner - (coeff * backward).sum()).abs() <= bound


def tiny(order: int, bound: str, ndim: int, extrapolate: bool | str = True) -> tuple[Any, ...]:
    """Leaves, far from knots, for finite differences: coeff, coords, value; shape, options."""
    shape, out = ((3,), (3, 4), (2, 3, 2))[ndim - 1], (2, 1, 1)[:ndim]
    random = np.random.default_rng(100 * order + ndim)
    coeff = torch.from_numpy(random.standard_normal((1, 4 - ndim, *shape))).requires_grad_()
    coords = torch.stack([off_knots(random, (1, *out), -2.0, n + 1.0) for n in shape], 1).requires_grad_()
    value = torch.from_numpy(random.standard_normal((1, 4 - ndim, *out))).requires_grad_()
    return coeff, coords, value, shape, (order, bound, extrapolate)


every_derivative = pytest.mark.parametrize(
    ("order", "bound", "ndim"),
    [(order, bound, ndim) for ndim in (1, 2) for order in range(1, 8) for bound in reference.BOUNDS]
    + [(order, reference.BOUNDS[order - 1], 3) for order in range(1, 8)],
)


@every_derivative
def test_gradients_are_finite_differences(order: int, bound: str, ndim: int) -> None:
    coeff, coords, value, shape, options = tiny(order, bound, ndim)
    assert gradcheck(lambda v, x: ops.pull(v, x, *options), (coeff, coords), **CHECK)
    assert gradcheck(lambda y, x: ops.push(y, x, shape, *options), (value, coords), **CHECK)
    assert gradcheck(lambda x: ops.count(x, shape, *options), (coords,), **CHECK)
    assert gradcheck(lambda v, x: ops.grad(v, x, *options), (coeff, coords), **CHECK)


@pytest.mark.parametrize("order", range(1, 8))
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_gradients_of_hess_are_finite_differences(order: int, ndim: int) -> None:
    bound = reference.BOUNDS[order - 1]
    coeff, coords, _, _, options = tiny(order, bound, ndim)
    assert gradcheck(lambda v, x: ops.hess(v, x, *options), (coeff, coords), **CHECK)


@pytest.mark.parametrize("extrapolate", [False, "center", "edge"])
def test_gradients_are_finite_differences_where_part_is_out_of_view(extrapolate: bool | str) -> None:
    coeff, coords, value, shape, options = tiny(3, "dct1", 2, extrapolate)
    assert gradcheck(lambda v, x: ops.pull(v, x, *options), (coeff, coords), **CHECK)
    assert gradcheck(lambda y, x: ops.push(y, x, shape, *options), (value, coords), **CHECK)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_second_derivatives_are_finite_differences(order: int, ndim: int) -> None:
    bound = reference.BOUNDS[(order + 2 * ndim) % 7]
    coeff, coords, value, shape, options = tiny(order, bound, ndim)
    assert gradgradcheck(lambda v, x: ops.pull(v, x, *options), (coeff, coords), **CHECK)
    assert gradgradcheck(lambda y, x: ops.push(y, x, shape, *options), (value, coords), **CHECK)
    assert gradgradcheck(lambda x: ops.count(x, shape, *options), (coords,), **CHECK)
    assert gradgradcheck(lambda v, x: ops.grad(v, x, *options), (coeff, coords), **CHECK)
    assert gradgradcheck(lambda v, x: ops.hess(v, x, *options), (coeff, coords), **CHECK)


@pytest.mark.parametrize("bound", reference.BOUNDS)
def test_second_derivatives_of_pull_are_finite_differences_under_every_bound(bound: str) -> None:
    coeff, coords, _, _, _ = tiny(3, bound, 2)
    assert gradgradcheck(lambda v, x: ops.pull(v, x, [3, 2], ["dct2", bound]), (coeff, coords), **CHECK)


def test_the_third_derivative_of_pull_is_that_of_the_spline() -> None:
    coeff = torch.tensor([[[0.0, 0, 0, 1, 0, 0, 0]]], dtype=torch.float64)
    for order in (3, 5, 7):
        x = torch.tensor([[[3.3]]], dtype=torch.float64, requires_grad=True)
        y = ops.pull(coeff, x, order)
        for degree in range(4):
            if degree:
                (y,) = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)
            assert y.item() == pytest.approx(reference.bspline(order, x.item() - 3, degree).item(), abs=1e-12)


@pytest.mark.parametrize("bound", reference.BOUNDS)
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_pull_at_voxel_centres_is_exact(bound: str, order: int, dtype: torch.dtype) -> None:
    image = torch.randn(2, 3, 4, 1, 6, dtype=dtype)
    coords = ops.identity((4, 1, 6), dtype=dtype).expand(2, -1, -1, -1, -1)
    assert torch.equal(ops.pull(image, coords, order, bound), image)
    assert torch.equal(ops.push(image, coords, (4, 1, 6), order, bound), image)


@pytest.mark.parametrize("order", range(1, 8))
@pytest.mark.parametrize("bound", reference.BOUNDS)
def test_pull_is_continuous_at_the_knots(order: int, bound: str) -> None:
    coeff = torch.randn(1, 1, 5, dtype=torch.float64)
    coords = (torch.arange(-40, 60, dtype=torch.float64) / 4)[None, None]
    scale = reference.sample(coeff, coords, order, bound, absolute=True)
    assert (
        reference.error(ops.pull(coeff, coords, order, bound), reference.pull(coeff, coords, order, bound), scale)
        <= 1e-12
    )
    assert (ops.pull(coeff, coords, order, bound) - ops.pull(coeff, coords - 1e-12, order, bound)).abs().max() < 1e-10


@pytest.mark.parametrize("bound", reference.BOUNDS)
@pytest.mark.parametrize("order", range(1, 8))
def test_derivatives_at_the_knots_are_those_from_the_right(order: int, bound: str) -> None:
    coeff = torch.randn(1, 1, 5, dtype=torch.float64)
    coords = (torch.arange(-20, 30, dtype=torch.float64) / 2)[None, None]
    for degree, op in enumerate((ops.grad, ops.hess), start=1):
        scale = reference.sample(coeff, coords, order, bound, degree=degree, absolute=True)
        want = reference.sample(coeff, coords, order, bound, degree=degree)
        assert reference.error(op(coeff, coords, order, bound), want, scale) <= 1e-12


def test_nearest_ties_go_up() -> None:
    coords = torch.tensor([[[-0.5, 0.5, 1.5, 2.5]]], dtype=torch.float64)
    image = torch.tensor([[[1.0, 2, 3, 4]]], dtype=torch.float64)
    assert ops.pull(image, coords, 0).flatten().tolist() == [1, 2, 3, 4]
    assert ops.push(torch.ones(1, 1, 4, dtype=torch.float64), coords, (4,), 0).flatten().tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("order", range(8))
def test_weights_sum_to_one_and_their_derivatives_to_zero(order: int) -> None:
    coords = off_knots(np.random.default_rng(0), (1, 2, 9, 7), -20, 20)
    ones = torch.ones(1, 1, 5, 3, dtype=torch.float64)
    for bound in ("replicate", "dct1", "dct2", "dft"):
        torch.testing.assert_close(ops.pull(ones, coords, order, bound), torch.ones(1, 1, 9, 7).double())
        assert ops.count(coords, (5, 3), order, bound).sum().item() == pytest.approx(63, rel=1e-12)
        if order > 0:
            assert ops.grad(ones, coords, order, bound).abs().max() < 1e-12
            assert ops.hess(ones, coords, order, bound).abs().max() < 1e-12


def test_hess_of_a_linear_spline_has_mixed_entries_only() -> None:
    image = torch.tensor([[[[1.0, 2.0], [4.0, 9.0]]]], dtype=torch.float64)
    got = ops.hess(image, torch.tensor([[[0.3], [0.6]]], dtype=torch.float64)[..., None], 1)
    assert got.shape == (1, 1, 2, 2, 1, 1)
    torch.testing.assert_close(got.flatten(), torch.tensor([0.0, 4.0, 4.0, 0.0]).double())


@pytest.mark.parametrize(
    "op",
    [
        lambda image, x: ops.pull(image, x, 3),
        lambda image, x: ops.grad(image, x, 2),
        lambda image, x: ops.hess(image, x, 3),
        lambda image, x: ops.push(ops.pull(image, x), x, (4, 6), 1),
    ],
    ids=["pull", "grad", "hess", "push"],
)
def test_strides_do_not_change_the_result(op: Callable[[Tensor, Tensor], Tensor]) -> None:
    image = torch.randn(2, 3, 5, 6, dtype=torch.float64)
    coords = torch.rand(2, 2, 4, 5, dtype=torch.float64) * 9 - 2
    for one in LAYOUTS[:-1]:
        for other in LAYOUTS[:-1]:
            torch.testing.assert_close(op(laid_out(image, one), laid_out(coords, other)), op(image, coords))
    same = image[:1, :1].expand_as(image), coords[:1].expand_as(coords)
    torch.testing.assert_close(op(*same), op(same[0].contiguous(), same[1].contiguous()))


def test_many_channels_are_no_special_case() -> None:
    coeff = torch.randn(1, 1100, 3, 2, 2)
    coords = off_knots(np.random.default_rng(0), (1, 3, 2, 1, 2), -1, 3).float()
    scale = reference.sample(coeff, coords, 3, "dft", absolute=True)
    assert reference.error(ops.pull(coeff, coords, 3, "dft"), reference.pull(coeff, coords, 3, "dft"), scale) <= 1e-5


ALIASES = {
    "zeros": "zero",
    "nearest": "replicate",
    "border": "replicate",
    "mirror": "dct1",
    "reflect": "dct2",
    "neumann": "dct2",
    "antimirror": "dst1",
    "antireflect": "dst2",
    "dirichlet": "dst2",
    "wrap": "dft",
    "circular": "dft",
}


@pytest.mark.parametrize(("alias", "bound"), ALIASES.items())
def test_bounds_have_their_usual_other_names(alias: str, bound: str) -> None:
    coeff, coords = torch.randn(1, 1, 5), torch.rand(1, 1, 20) * 20 - 8
    assert torch.equal(ops.pull(coeff, coords, 3, alias), ops.pull(coeff, coords, 3, bound))
    assert torch.equal(ops.prefilter(coeff, 3, alias), ops.prefilter(coeff, 3, bound))
