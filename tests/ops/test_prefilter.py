"""prefilter against the dense solve, and its adjoint against the transposed solve."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from regnet import ops
from tests import reference
from tests.ops.cases import CHECK, LAYOUTS, laid_out

LENGTHS = (*range(1, 13), 40, 101)
every_filter = pytest.mark.parametrize(
    ("order", "bound"), list(itertools.product(range(2, 8), reference.BOUNDS)), ids=str
)


def drawn(count: int) -> list[tuple[tuple[int, ...], Any, Any]]:
    """2-D and 3-D shapes with orders and bounds, a third of them mixed per axis."""
    random = np.random.default_rng(5)
    cases = []
    for _ in range(count):
        ndim = int(random.integers(2, 4))
        shape = tuple(map(int, random.integers(1, 9, size=ndim)))
        order: Any = [int(random.integers(8)) for _ in range(ndim)]
        bound: Any = [reference.BOUNDS[random.integers(7)] for _ in range(ndim)]
        mixed = random.random() < 1 / 3
        cases.append((shape, order if mixed else order[0], bound if mixed else bound[0]))
    return cases


@every_filter
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_lines_of_any_length_equal_the_dense_solve(order: int, bound: str, dtype: torch.dtype) -> None:
    for n in LENGTHS:
        image = torch.randn(2, 3, n, dtype=dtype)
        got, want = ops.prefilter(image, order, bound), reference.prefilter(image, order, bound)
        assert got.dtype == dtype
        assert reference.error(got, want, np.abs(want).max()) <= (1e-12 if dtype == torch.float64 else 1e-5), n


@every_filter
def test_pull_of_the_filtered_samples_gives_the_samples_back(order: int, bound: str) -> None:
    for n in LENGTHS:
        image = torch.randn(1, 2, n, dtype=torch.float64)
        back = ops.pull(ops.prefilter(image, order, bound), ops.identity((n,), dtype=torch.float64), order, bound)
        assert (back - image).abs().max() <= 1e-12 * image.abs().max(), n


@every_filter
def test_the_backward_pass_is_the_exact_adjoint(order: int, bound: str) -> None:
    for n in LENGTHS:
        x = torch.randn(2, 2, n, dtype=torch.float64, requires_grad=True)
        y = torch.randn(2, 2, n, dtype=torch.float64)
        filtered = ops.prefilter(x, order, bound)
        (back,) = torch.autograd.grad(filtered, x, y)
        gap = ((filtered * y).sum() - (x * back).sum()).abs()
        assert gap <= 1e-13 * filtered.norm() * y.norm(), n
        want = reference.prefilter_adjoint(y, order, bound)
        assert reference.error(back, want, np.abs(want).max()) <= 1e-12, n


@pytest.mark.parametrize(("shape", "order", "bound"), drawn(100), ids=str)
def test_images_equal_the_dense_solve_along_every_axis(shape: tuple[int, ...], order: Any, bound: Any) -> None:
    x = torch.randn(2, 3, *shape, dtype=torch.float64, requires_grad=True)
    y = torch.randn_like(x)
    got, want = ops.prefilter(x, order, bound), reference.prefilter(x, order, bound)
    assert reference.error(got, want, np.abs(want).max()) <= 1e-12
    (back,) = torch.autograd.grad(got, x, y)
    want = reference.prefilter_adjoint(y, order, bound)
    assert reference.error(back, want, np.abs(want).max()) <= 1e-12
    single = ops.prefilter(x.detach().float(), order, bound)
    want = reference.prefilter(x.detach().float(), order, bound)
    assert reference.error(single, want, np.abs(want).max()) <= 1e-5


@every_filter
def test_gradients_are_finite_differences(order: int, bound: str) -> None:
    x = torch.randn(1, 1, 3, 4, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: ops.prefilter(x, order, [bound, "dct1"]), (x,), check_forward_ad=True, **CHECK)
    assert gradgradcheck(lambda x: ops.prefilter(x, order, [bound, "dct1"]), (x,), **CHECK)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("bound", reference.BOUNDS)
def test_strides_do_not_change_a_single_bit_and_the_input_stays(bound: str, layout: str) -> None:
    image = torch.randn(2, 3, 4, 5, 6)
    for order in (3, 5):
        given = laid_out(image, layout)
        kept = given.clone()
        got = ops.prefilter(given, order, bound)
        assert torch.equal(given, kept)
        assert torch.equal(got, ops.prefilter(kept.contiguous(), order, bound))


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("bound", reference.BOUNDS)
def test_orders_zero_and_one_need_no_filter(order: int, bound: str) -> None:
    image = torch.randn(2, 1, 3, 4, requires_grad=True)
    filtered = ops.prefilter(image, order, bound)
    assert torch.equal(filtered, image)
    assert torch.equal(torch.autograd.grad(filtered.sum(), image)[0], torch.ones_like(image))


@pytest.mark.parametrize("bound", ["replicate", "dct1", "dct2", "dft"])
@pytest.mark.parametrize("order", range(2, 8))
def test_a_constant_stays_a_constant(bound: str, order: int) -> None:
    for n in LENGTHS:
        constant = torch.full((1, 1, n, 3), 7.0, dtype=torch.float64)
        torch.testing.assert_close(ops.prefilter(constant, order, bound), constant, rtol=1e-13, atol=0)


def test_a_single_sample_is_divided_by_what_its_bound_sees_of_it() -> None:
    beta = [2 / 3, 1 / 6, 0]
    want = {"zero": 1 / beta[0], "dst1": 1 / beta[0], "dst2": 1 / (beta[0] - 2 * beta[1])}
    for bound in reference.BOUNDS:
        got = ops.prefilter(torch.ones(1, 1, 1, dtype=torch.float64), 3, bound).item()
        assert got == pytest.approx(want.get(bound, 1.0), rel=1e-14)
    got = ops.prefilter(torch.ones(1, 1, 1, dtype=torch.float64), 4, "dst1").item()
    assert got == pytest.approx(
        1 / (115 / 192 - 2 / 384), rel=1e-14
    )  # antisymmetric about both neighbours: -1 0 1 0 -1


def test_c6_filtering_once_and_pulling_often_is_one_warp() -> None:
    image = torch.arange(6, dtype=torch.float64).reshape(1, 1, 2, 3)
    far = torch.rand(1, 2, 50, 1, dtype=torch.float64) * 15 - 6
    for bound, value in {"dct1": 1.0, "dct2": 2.0, "dft": 0.0}.items():
        coeff = ops.prefilter(image, 3, bound)
        at = torch.tensor([0.0, 3.0], dtype=torch.float64).reshape(1, 2, 1, 1)
        assert ops.pull(coeff, at, 3, bound).item() == pytest.approx(value, abs=1e-12)
        flow = far - ops.identity((50, 1), dtype=torch.float64)
        warped = ops.warp(image, flow, 3, bound)
        torch.testing.assert_close(warped, ops.pull(coeff, far, 3, bound), rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(ops.warp(coeff, flow, 3, bound, prefilter=False), warped, rtol=1e-12, atol=1e-12)
