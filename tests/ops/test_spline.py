"""Spline: values, derivatives, and gradients in the samples, against the dense solve and the dense sums."""

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
from tests.ops.cases import CHECK, off_knots

SHAPE, OUT = (5, 4, 3), (2, 1, 3)
every_spline = pytest.mark.parametrize(
    ("ndim", "order", "bound"), list(itertools.product((1, 2, 3), range(1, 8), reference.BOUNDS)), ids=str
)


def problem(ndim: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """samples (2, 2, *SHAPE), coords (2, D, *OUT), off the knots, inside and outside."""
    random = np.random.default_rng(seed)
    samples = torch.from_numpy(random.standard_normal((2, 2, *SHAPE[:ndim])))
    return samples, off_knots(random, (2, ndim, *OUT[:ndim]), -2, 6)


def close(got: Tensor, want: Any, size: Any) -> None:
    """To 1e-12 of the sum of the absolute terms."""
    assert reference.error(got, want, size) <= 1e-12


@every_spline
def test_values_and_derivatives_are_those_of_the_dense_solve(ndim: int, order: int, bound: str) -> None:
    samples, coords = problem(ndim)
    spline, coeff = ops.Spline(samples, order, bound), reference.prefilter(samples, order, bound)
    for degree, method in enumerate((spline.value, spline.gradient, spline.hessian)):
        size = reference.sample(coeff, coords, order, bound, degree=degree, absolute=True)
        close(method(coords), reference.sample(coeff, coords, order, bound, degree=degree), size)
    value, gradient = spline.value_and_gradient(coords)
    assert torch.equal(value, spline.value(coords)) and torch.equal(gradient, spline.gradient(coords))


@every_spline
@pytest.mark.parametrize("degree", [0, 1, 2])
def test_the_gradient_of_a_penalty_reaches_samples_and_coordinates(
    ndim: int, order: int, bound: str, degree: int
) -> None:
    # f = sum (d^k s(x))^2; df/dsamples = filter^T (scatter_k 2 d^k s), df/dx = 2 d^k s . d^(k+1) s
    samples, coords = (x.requires_grad_() for x in problem(ndim))
    spline = ops.Spline(samples, order, bound)
    found = (spline.value, spline.gradient, spline.hessian)[degree](coords)
    by_samples, by_coords = torch.autograd.grad(found.square().sum(), (samples, coords))
    coeff, options = reference.prefilter(samples, order, bound), (order, bound)
    derived = reference.sample(coeff, coords, *options, degree=degree)
    pushed = reference.scatter(2 * derived, coords, SHAPE[:ndim], *options, degree=degree)
    want = reference.prefilter_adjoint(pushed, order, bound)
    scale = np.abs(reference.scatter(np.abs(derived) * 2, coords, SHAPE[:ndim], *options, degree=degree, absolute=True))
    close(by_samples, want, max(scale.max(), np.abs(want).max()))

    def contracted(derived: Any, absolute: bool) -> Any:
        up = reference.sample(coeff, coords, *options, degree=degree + 1, absolute=absolute)
        return 2 * (derived.reshape(2, 2, -1, 1, *OUT[:ndim]) * up.reshape(2, 2, -1, ndim, *OUT[:ndim])).sum((1, 2))

    bounded = reference.sample(coeff, coords, *options, degree=degree, absolute=True)
    close(by_coords, contracted(derived, False), contracted(bounded, True))


@pytest.mark.parametrize("order", [2, 3, 5])
@pytest.mark.parametrize("ndim", [1, 2])
def test_second_derivatives_of_the_hessian_are_finite_differences(ndim: int, order: int) -> None:
    samples, coords = (x[:1, :1].contiguous() if x.shape[1] > ndim else x[:1] for x in problem(ndim))
    leaves = samples[:, :1].clone().requires_grad_(), coords.clone().requires_grad_()
    for bound in ("dct1", "replicate"):

        def hessian(samples: Tensor, coords: Tensor, bound: str = bound) -> Tensor:
            return ops.Spline(samples, order, bound).hessian(coords)

        assert gradcheck(hessian, leaves, check_forward_ad=True, **CHECK)
        assert gradgradcheck(hessian, leaves, check_fwd_over_rev=True, **CHECK)


def test_order_zero_has_values_only() -> None:
    samples, coords = problem(2)
    spline = ops.Spline(samples.requires_grad_(), 0)
    assert torch.equal(spline.value(coords).detach(), ops.pull(samples, coords, 0).detach())
    (back,) = torch.autograd.grad(spline.value(coords).sum(), samples)
    assert torch.equal(back, ops.push(torch.ones(2, 2, *OUT[:2], dtype=torch.float64), coords, SHAPE[:2], 0))
    for method in (spline.gradient, spline.hessian, spline.value_and_gradient):
        with pytest.raises(ValueError, match="order 0"):
            method(coords)
    with pytest.raises(RuntimeError, match="order 0"):
        spline.value(coords.requires_grad_()).sum().backward()


def test_coefficients_are_taken_as_they_are_if_asked() -> None:
    samples, coords = problem(2)
    filtered = ops.Spline(samples, 3, "dct1")
    again = ops.Spline(filtered.coeff, 3, "dct1", prefilter=False)
    assert again.coeff is filtered.coeff
    assert torch.equal(again.hessian(coords), filtered.hessian(coords))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_samples_are_filtered_in_single_precision(dtype: torch.dtype) -> None:
    samples, coords = (x.to(dtype) for x in problem(3))
    got = ops.Spline(samples, 5).value(coords)
    assert got.dtype == dtype
    assert torch.equal(got, ops.Spline(samples.float(), 5).value(coords.float()).to(dtype))


def test_a_spline_inside_func_grad_is_differentiated_in_its_samples() -> None:
    samples, coords = problem(2)

    def bending(samples: Tensor) -> Tensor:
        return ops.Spline(samples, 3, "dct1").hessian(coords).square().sum()

    leaf = samples.clone().requires_grad_()
    (want,) = torch.autograd.grad(bending(leaf), leaf)
    torch.testing.assert_close(torch.func.grad(bending)(samples), want, rtol=1e-13, atol=1e-13)


def test_mistakes_are_named_when_the_spline_is_made() -> None:
    image = torch.zeros(1, 1, 4, 5)
    for arguments, named in (((image[0, 0],), "spatial"), ((image, 8), "8"), ((image, 3, "edge"), "edge")):
        for prefilter in (True, False):
            with pytest.raises(ValueError, match=named):
                ops.Spline(*arguments, prefilter=prefilter)
