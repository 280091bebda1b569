"""SamplingOperator: the functional forms, their dense matrix, and its transpose."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from regnet import ops
from tests import reference
from tests.ops.cases import CHECK, EXTRAPOLATE, Case, drawn

SHAPE, OUT = (4, 3, 5), (3, 4, 2)


def smallest() -> list[Case]:
    """Every order, bound and dimension once, with each rule of extrapolation in turn."""
    everything = itertools.product((1, 2, 3), range(8), reference.BOUNDS)
    return [
        Case(SHAPE[:ndim], OUT[:ndim], order, bound, EXTRAPOLATE[k % 4], batch=2, channels=2, seed=k)
        for k, (ndim, order, bound) in enumerate(everything)
    ]


def doubles(case: Case) -> tuple[Tensor, Tensor]:
    return case.coeff().double(), case.coords().double()


def operators(case: Case, coords: Tensor) -> list[ops.SamplingOperator]:
    """Of every degree that the order has, for coefficients and for samples."""
    degrees = (0, 1, 2) if min(case.orders) > 0 else (0,)
    return [
        ops.SamplingOperator(coords, case.shape, *case.options, prefilter=prefilter, deriv=deriv)
        for deriv, prefilter in itertools.product(degrees, (False, True))
    ]


@pytest.mark.parametrize("case", smallest() + drawn(60, seed=7), ids=str)
def test_the_operator_is_its_dense_matrix_and_the_adjoint_its_transpose(case: Case) -> None:
    x, coords = doubles(case)
    for a in operators(case, coords):
        y = case.value(*[case.ndim] * a.deriv).double()
        matrix = a.dense()
        assert matrix.shape == (case.batch, case.ndim**a.deriv * int(np.prod(case.out)), int(np.prod(case.shape)))
        forward, backward = a(x), a.T(y)
        assert torch.equal(a @ x, forward) and torch.equal(a.T @ y, backward)
        torch.testing.assert_close(forward.flatten(2), x.flatten(2) @ matrix.mT, rtol=1e-11, atol=1e-11)
        torch.testing.assert_close(backward.flatten(2), y.flatten(2) @ a.T.dense().mT, rtol=1e-11, atol=1e-11)
        gap = ((forward * y).sum() - (x * backward).sum()).abs()
        assert gap <= 1e-13 * max(forward.norm(), x.norm()) * y.norm()  # of a constant, derivatives are 0
        assert a.T.T is a


@pytest.mark.parametrize("case", smallest()[::5] + drawn(40, seed=8), ids=str)
def test_c9_the_operator_equals_the_functional_forms(case: Case) -> None:
    coeff, coords, value = case.coeff(), case.coords(), case.value()
    functions = (ops.pull, ops.grad, ops.hess)
    for a in operators(case, coords):
        if not a._filters or max(case.orders) < 2:
            assert torch.equal(a(coeff), functions[a.deriv](coeff, coords, *case.options))
    a = ops.SamplingOperator(coords, case.shape, *case.options)
    assert torch.equal(a.T(value), ops.push(value, coords, case.shape, *case.options))
    assert a(coeff).dtype == coeff.dtype and a.T(value).dtype == value.dtype


@pytest.mark.parametrize("bound", reference.BOUNDS)
@pytest.mark.parametrize("order", range(1, 8))
def test_the_adjoint_without_autograd_is_the_one_autograd_gives(order: int, bound: str) -> None:
    case = Case(SHAPE, OUT, order, bound, "edge", batch=2, channels=2, seed=order)
    x, coords = doubles(case)
    for a in operators(case, coords):
        y = case.value(*[3] * a.deriv)
        x.requires_grad_()
        (want,) = torch.autograd.grad(a(x), x, y)
        with torch.no_grad():
            torch.testing.assert_close(a.T @ y, want, rtol=1e-12, atol=1e-12)


def test_the_adjoint_of_a_filtering_operator_is_the_dense_transpose() -> None:
    # dct1 and replicate above order 3 have filters that are not symmetric
    for order, bound in ((3, "dct1"), (5, "replicate"), (2, "dst2")):
        case = Case((5, 4), (3, 2), order, bound, batch=2, channels=2)
        _, coords = doubles(case)
        y = case.value(2, 2)
        a = ops.SamplingOperator(coords, (5, 4), order, bound, prefilter=True, deriv=2)
        want = reference.prefilter_adjoint(reference.scatter(y, coords, (5, 4), order, bound, degree=2), order, bound)
        np.testing.assert_allclose((a.T @ y).numpy(), want, rtol=0, atol=1e-11)


@pytest.mark.parametrize("deriv", [0, 1, 2])
@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_both_directions_are_differentiable_in_their_input_and_in_the_coordinates(order: int, deriv: int) -> None:
    case = Case((3, 4), (2, 1), order, "dct1")
    x, coords = (t.requires_grad_() for t in doubles(case))
    y = case.value(*[2] * deriv).requires_grad_()

    def forward(x: Tensor, coords: Tensor) -> Tensor:
        return ops.SamplingOperator(coords, (3, 4), order, "dct1", prefilter=True, deriv=deriv) @ x

    def backward(y: Tensor, coords: Tensor) -> Tensor:
        return ops.SamplingOperator(coords, (3, 4), order, "dct1", prefilter=True, deriv=deriv).T @ y

    for function, leaf in ((forward, x), (backward, y)):
        assert gradcheck(function, (leaf, coords), check_forward_ad=True, **CHECK)
        assert gradgradcheck(function, (leaf, coords), check_fwd_over_rev=True, **CHECK)


def test_least_squares_through_the_operator_finds_the_coefficients() -> None:
    random = np.random.default_rng(0)
    coords = torch.from_numpy(random.uniform(0, 4, (1, 1, 40)))
    truth = torch.from_numpy(random.standard_normal((1, 1, 5)))
    a = ops.SamplingOperator(coords, (5,), 3)
    normal = torch.stack([(a.T @ (a @ unit))[0, 0] for unit in torch.eye(5, dtype=torch.float64)[:, None, None]], 1)
    found = torch.linalg.solve(normal, (a.T @ (a @ truth))[0, 0])
    torch.testing.assert_close(found, truth[0, 0], rtol=1e-9, atol=1e-9)


def test_a_batch_of_one_is_broadcast() -> None:
    random = np.random.default_rng(0)
    coords = torch.from_numpy(random.uniform(0, 4, (1, 2, 3, 2)))
    a, x = ops.SamplingOperator(coords, (5, 4), 3, prefilter=True), torch.randn(3, 2, 5, 4, dtype=torch.float64)
    for one, all_ in zip(x, a @ x, strict=True):
        torch.testing.assert_close((a @ one[None])[0], all_, rtol=1e-13, atol=1e-13)
    assert (a.T @ torch.zeros(3, 2, 3, 2)).shape == (3, 2, 5, 4)


MISTAKES: dict[str, tuple[Any, str]] = {
    "deriv": (lambda a, c: ops.SamplingOperator(c, (5, 4), deriv=3), "deriv"),
    "order 0 has no derivatives": (lambda a, c: ops.SamplingOperator(c, (5, 4), [0, 1], deriv=1), "order 0"),
    "sizes": (lambda a, c: ops.SamplingOperator(c, (5,)), r"\(5,\)"),
    "no voxels": (lambda a, c: ops.SamplingOperator(c, (5, 0)), "no voxels"),
    "bound": (lambda a, c: ops.SamplingOperator(c, (5, 4), 1, "nowhere"), "nowhere"),
    "another image": (lambda a, c: a @ torch.zeros(1, 1, 4, 5), r"\(1, 1, 4, 5\)"),
    "values of another shape": (lambda a, c: a.T @ torch.zeros(1, 1, 3, 3), r"\(1, 1, 3, 3\)"),
    "values without derivatives": (
        lambda a, c: ops.SamplingOperator(c, (5, 4), deriv=1).T @ torch.zeros(1, 1, 3, 2),
        r"\(N, C, \*\(2, 3, 2\)\)",
    ),
    "integers": (lambda a, c: a.T @ torch.zeros(1, 1, 3, 2).int(), "int32"),
    "batches": (lambda a, c: a @ torch.zeros(3, 1, 5, 4), "batch"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gets_one_line_that_names_it(name: str) -> None:
    call, named = MISTAKES[name]
    coords = torch.zeros(2, 2, 3, 2)
    with pytest.raises(ValueError, match=named) as caught:
        call(ops.SamplingOperator(coords, (5, 4)), coords)
    assert "\n" not in str(caught.value)
