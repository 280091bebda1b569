"""Every way torch asks for a derivative, checked by number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap

from regnet import ops
from tests import reference
from tests.ops.cases import CHECK, off_knots

OPTIONS: tuple[Any, ...] = ([3, 2], ["dct1", "dst2"], "edge")
SHAPE = (5, 4)


def inputs() -> tuple[Tensor, Tensor, Tensor]:
    """coeff (2, 3, 5, 4), coords (2, 2, 3, 2), value (2, 3, 3, 2)."""
    random = np.random.default_rng(0)
    coeff = torch.from_numpy(random.standard_normal((2, 3, *SHAPE)))
    value = torch.from_numpy(random.standard_normal((2, 3, 3, 2)))
    return coeff, off_knots(random, (2, 2, 3, 2), -1, 5), value


def tangents() -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(1)
    sizes = [x.shape for x in inputs()]
    dv, dx, dy = (torch.randn(size, dtype=torch.float64, generator=random) for size in sizes)
    return dv, dx, dy


def close(got: Tensor, want: np.ndarray[Any, Any]) -> None:
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-11, atol=1e-12)


def test_the_jvp_of_pull_is_its_two_directional_derivatives() -> None:
    (v, x, _), (dv, dx, _) = inputs(), tangents()
    out, tangent = jvp(lambda v, x: ops.pull(v, x, *OPTIONS), (v, x), (dv, dx))
    close(out, reference.pull(v, x, *OPTIONS))
    along = (reference.grad(v, x, *OPTIONS) * reference.array(dx)[:, None]).sum(2)
    close(tangent, reference.pull(dv, x, *OPTIONS) + along)


def test_the_jvp_of_push_is_its_two_directional_derivatives() -> None:
    (_, x, y), (_, dx, dy) = inputs(), tangents()
    _, tangent = jvp(lambda y, x: ops.push(y, x, SHAPE, *OPTIONS), (y, x), (dy, dx))
    along = reference.scatter(y[:, :, None] * dx[:, None], x, SHAPE, *OPTIONS, degree=1)
    close(tangent, reference.push(dy, x, SHAPE, *OPTIONS) + along)


def test_the_jvp_of_count_is_its_directional_derivative() -> None:
    (_, x, _), (_, dx, _) = inputs(), tangents()
    _, tangent = jvp(lambda x: ops.count(x, SHAPE, *OPTIONS), (x,), (dx,))
    close(tangent, reference.scatter(dx[:, None], x, SHAPE, *OPTIONS, degree=1))


def test_the_jvp_of_grad_is_its_two_directional_derivatives() -> None:
    (v, x, _), (dv, dx, _) = inputs(), tangents()
    _, tangent = jvp(lambda v, x: ops.grad(v, x, *OPTIONS), (v, x), (dv, dx))
    along = (reference.hess(v, x, *OPTIONS) * reference.array(dx)[:, None, None]).sum(3)
    close(tangent, reference.grad(dv, x, *OPTIONS) + along)


def test_the_jvp_of_hess_is_its_two_directional_derivatives() -> None:
    (v, x, _), (dv, dx, _) = inputs(), tangents()
    _, tangent = jvp(lambda v, x: ops.hess(v, x, *OPTIONS), (v, x), (dv, dx))
    third = reference.sample(v, x, *OPTIONS, degree=3)
    close(tangent, reference.hess(dv, x, *OPTIONS) + (third * reference.array(dx)[:, None, None, None]).sum(4))


def test_the_jvp_of_prefilter_is_the_prefiltered_tangent() -> None:
    (v, _, _), (dv, _, _) = inputs(), tangents()
    _, tangent = jvp(lambda v: ops.prefilter(v, 4, ["replicate", "dct1"]), (v,), (dv,))
    close(tangent, reference.prefilter(dv, 4, ["replicate", "dct1"]))


def test_the_jvp_of_warp_is_its_directional_derivatives_also_in_the_matrix() -> None:
    random = torch.Generator().manual_seed(2)
    image, flow, dimage, dflow = (torch.randn(1, 2, 5, 4, dtype=torch.float64, generator=random) for _ in range(4))
    matrix = torch.tensor([[[0.9, 0.1, 0.23], [-0.2, 1.1, 0.31]]], dtype=torch.float64)
    dmatrix = torch.randn(1, 2, 3, dtype=torch.float64, generator=random)
    _, tangent = jvp(lambda i, f, m: ops.warp(i, f, 3, matrix=m), (image, flow, matrix), (dimage, dflow, dmatrix))
    x = reference.positions(flow, matrix)
    fixed = reference.positions(flow)
    turned = np.einsum("nde,nehw->ndhw", reference.array(matrix)[:, :, :-1], reference.array(dflow))
    moved = np.einsum("nde,nehw->ndhw", reference.array(dmatrix)[:, :, :-1], fixed)
    dx = turned + moved + reference.array(dmatrix)[:, :, -1, None, None]
    coeff = reference.prefilter(image, 3)
    want = reference.warp(dimage, flow, 3, matrix=matrix) + (reference.grad(coeff, x, 3) * dx[:, None]).sum(2)
    close(tangent, want)


def test_a_tangent_in_one_input_only_is_enough() -> None:
    (v, x, _), (dv, dx, _) = inputs(), tangents()
    _, tangent = jvp(lambda v: ops.pull(v, x, *OPTIONS), (v,), (dv,))
    close(tangent, reference.pull(dv, x, *OPTIONS))
    with forward_ad.dual_level():
        out = ops.pull(v, forward_ad.make_dual(x, dx), *OPTIONS)
        tangent = forward_ad.unpack_dual(out).tangent
    close(tangent, (reference.grad(v, x, *OPTIONS) * reference.array(dx)[:, None]).sum(2))


def test_func_grad_gives_the_gradient_in_the_coordinates() -> None:
    v, x, y = inputs()
    got = grad(lambda x: (ops.pull(v, x, *OPTIONS) * y).sum())(x)
    close(got, (reference.grad(v, x, *OPTIONS) * reference.array(y)[:, :, None]).sum(1))
    close(grad(lambda v: (ops.pull(v, x, *OPTIONS) * y).sum())(v), reference.push(y, x, SHAPE, *OPTIONS))


@pytest.mark.parametrize("name", ["hessian", "jacrev(jacrev)", "jacrev(jacfwd)"])
def test_func_hessian_is_the_hessian_of_the_spline(name: str) -> None:
    transform: dict[str, Callable[..., Any]] = {
        "hessian": hessian,
        "jacrev(jacrev)": lambda f: jacrev(jacrev(f)),
        "jacrev(jacfwd)": lambda f: jacrev(jacfwd(f)),
    }
    coeff = inputs()[0][:1, :1]
    x = torch.tensor([1.3, 2.2], dtype=torch.float64)
    got = transform[name](lambda x: ops.pull(coeff, x.reshape(1, 2, 1, 1), *OPTIONS).sum())(x)
    close(got, reference.hess(coeff, x.reshape(1, 2, 1, 1), *OPTIONS).reshape(2, 2))


@pytest.mark.parametrize("order", [3, 4, 5])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_third_derivatives_of_pull_and_fourth_by_hess_are_the_splines_own(ndim: int, order: int) -> None:
    random = np.random.default_rng(order)
    coeff = torch.from_numpy(random.standard_normal((1, 1, *(6, 4, 5)[:ndim])))
    x, single = off_knots(random, (ndim,), -1, 5), (1, ndim, *[1] * ndim)

    def pulled(x: Tensor) -> Tensor:
        return ops.pull(coeff, x.reshape(single), order, "dst2").sum()

    def bent(x: Tensor) -> Tensor:
        return ops.hess(coeff, x.reshape(single), order, "dst2").reshape(ndim, ndim)

    third, fourth = (
        reference.sample(coeff, x.reshape(single), order, "dst2", degree=k).reshape([ndim] * k) for k in (3, 4)
    )
    close(jacrev(jacrev(jacrev(pulled)))(x), third)
    close(jacfwd(jacrev(jacfwd(pulled)))(x), third)
    close(jacrev(jacrev(bent))(x), fourth)
    close(jacfwd(jacrev(bent))(x), fourth)


def test_a_linear_spline_has_zero_pure_second_derivatives_not_none() -> None:
    coeff, x = torch.randn(1, 1, 6, dtype=torch.float64), torch.tensor([[[1.3, 4.7]]], dtype=torch.float64)
    leaf = x.clone().requires_grad_()
    (first,) = torch.autograd.grad(ops.pull(coeff, leaf, 1).sum(), leaf, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), leaf)
    assert first.all() and torch.equal(second, torch.zeros_like(x))
    assert not ops.hess(coeff, x, 1).any()


OPERATORS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "pull": lambda v, x: ops.pull(v, x, *OPTIONS),
    "grad": lambda v, x: ops.grad(v, x, *OPTIONS),
    "hess": lambda v, x: ops.hess(v, x, *OPTIONS),
    "push": lambda v, x: ops.push(v[..., :3, :2], x, SHAPE, *OPTIONS),
    "count": lambda v, x: ops.count(x, SHAPE, *OPTIONS),
    "warp": lambda v, x: ops.warp(v, x, 2, "dct1"),
    "warp with a matrix": lambda v, x: ops.warp(v, x, 3, "dct1", matrix=x[..., 0]),
    "warp of one image": lambda v, x: ops.warp(v[:1], x, 3, "dst1"),
    "linear warp": lambda v, x: ops.warp(v, x, 1, "replicate", "edge"),
    "prefilter": lambda v, x: ops.prefilter(v, *OPTIONS[:2]),
    "compose": lambda v, x: ops.compose(v[:, :2], x, *OPTIONS[:2]),
    "integrate": lambda v, x: ops.integrate(x, 2, 3, "dft"),
    "resize": lambda v, x: ops.resize(v, (3, 6), order=3, bound="replicate"),
    "resize_flow": lambda v, x: ops.resize_flow(x, (4, 3), anchor="centers"),
    "jacobian": lambda v, x: ops.jacobian(x),
    "jacobian_determinant": lambda v, x: ops.jacobian_determinant(x),
    "box_sum": lambda v, x: ops.box_sum(v, (3, 1)),
    "Spline.hessian": lambda v, x: ops.Spline(v, *OPTIONS[:2]).hessian(x),
    "SamplingOperator": lambda v, x: ops.SamplingOperator(x, SHAPE, *OPTIONS, prefilter=True, deriv=1) @ v,
    "its adjoint": lambda v, x: ops.SamplingOperator(x, SHAPE, *OPTIONS, prefilter=True).T @ v[..., :3, :2],
}


@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0), (1, 2)], ids=str)
@pytest.mark.parametrize("name", OPERATORS)
def test_vmap_is_a_loop(name: str, in_dims: tuple[int | None, int | None]) -> None:
    random = np.random.default_rng(3)
    sizes = [(2, 3, 5, 4), (2, 2, 3, 2)]
    leaves = []
    for size, dim in zip(sizes, in_dims, strict=True):
        x = off_knots(random, (size if dim is None else (4, *size)), -1, 4)
        leaves.append(x if dim is None else x.movedim(0, dim))
    op = OPERATORS[name]
    got = vmap(op, in_dims)(*leaves)
    for k in range(4):
        one = [x if dim is None else x.select(dim, k) for x, dim in zip(leaves, in_dims, strict=True)]
        torch.testing.assert_close(got[k], op(*one), rtol=1e-12, atol=1e-12)


def test_vmap_of_func_grad_is_one_gradient_a_sample() -> None:
    v, x, _ = inputs()
    got = vmap(grad(lambda v, x: ops.pull(v[None], x[None], *OPTIONS).square().sum(), argnums=(0, 1)))(v, x)
    whole = grad(lambda v, x: ops.pull(v, x, *OPTIONS).square().sum(), argnums=(0, 1))(v, x)
    torch.testing.assert_close(got, whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", OPERATORS)
def test_finite_differences_agree_with_every_mode(name: str) -> None:
    coeff, coords, _ = inputs()
    leaves = coeff[:1, :2].clone().requires_grad_(), coords[:1].clone().requires_grad_()
    modes = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}
    assert gradcheck(OPERATORS[name], leaves, **CHECK, **modes)
    assert gradgradcheck(OPERATORS[name], leaves, **CHECK, check_fwd_over_rev=True)


def test_the_gradient_of_a_gradient_penalty_reaches_image_and_coordinates() -> None:
    coeff, coords, _ = (x.requires_grad_() for x in inputs())
    out = ops.pull(coeff, coords, *OPTIONS)
    (first,) = torch.autograd.grad(out.sum(), coords, create_graph=True)
    by_coeff, by_coords = torch.autograd.grad(first.square().sum(), (coeff, coords))
    g = reference.grad(coeff, coords, *OPTIONS).sum(1)
    h = reference.hess(coeff, coords, *OPTIONS).sum(1)
    close(by_coords, 2 * (g[:, :, None] * h).sum(1))
    shape = (2, 3, 2, *coords.shape[2:])
    close(by_coeff, reference.scatter(np.broadcast_to(2 * g[:, None], shape), coords, SHAPE, *OPTIONS, degree=1))


def saved_by(run: Callable[[], Tensor]) -> list[Tensor]:
    """What the graph of ``run`` keeps for its backward pass."""
    saved: list[Tensor] = []

    def pack(x: Tensor) -> Tensor:
        saved.append(x)
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        run()
    return saved


def keeps(saved: list[Tensor], x: Tensor) -> bool:
    return any(s.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() for s in saved)


def test_the_image_is_not_saved_when_only_the_image_needs_a_gradient() -> None:
    coeff, coords, value = inputs()
    coeff.requires_grad_()
    saved = saved_by(lambda: ops.pull(coeff, coords, *OPTIONS))
    assert keeps(saved, coords) and not keeps(saved, coeff)
    assert not keeps(saved_by(lambda: ops.grad(coeff, coords, *OPTIONS)), coeff)
    value.requires_grad_()
    assert not keeps(saved_by(lambda: ops.push(value, coords, SHAPE, *OPTIONS)), value)
    image, flow = torch.randn(1, 1, 5, 4, requires_grad=True), torch.randn(1, 2, 5, 4)
    assert not keeps(saved_by(lambda: ops.warp(image, flow)), image)


def test_image_and_coordinates_are_saved_when_the_coordinates_need_a_gradient() -> None:
    coeff, coords, _ = inputs()
    saved = saved_by(lambda: ops.pull(coeff, coords.requires_grad_(), *OPTIONS))
    assert keeps(saved, coords) and keeps(saved, coeff)


def test_nothing_is_saved_when_nothing_needs_a_gradient() -> None:
    coeff, coords, value = inputs()
    assert not saved_by(lambda: ops.pull(coeff, coords, *OPTIONS))
    assert not saved_by(lambda: ops.push(value, coords, SHAPE, *OPTIONS))


def test_only_the_gradient_that_is_asked_for_is_made() -> None:
    coeff, coords, value = inputs()
    out = ops.pull(coeff.requires_grad_(), coords.requires_grad_(), *OPTIONS)
    (by_coords,) = torch.autograd.grad(out, coords, value, retain_graph=True)
    (by_coeff,) = torch.autograd.grad(out, coeff, value, retain_graph=True)
    both = torch.autograd.grad(out, (coeff, coords), value)
    torch.testing.assert_close((by_coeff, by_coords), both, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("order", [0, [0, 2], [3, 0]], ids=str)
def test_order_zero_refuses_to_differentiate_its_coordinates(order: Any) -> None:
    coeff, coords, value = inputs()
    for run in (
        lambda x: ops.pull(coeff, x, order),
        lambda x: ops.push(value, x, SHAPE, order),
        lambda x: ops.count(x, SHAPE, order),
        lambda x: ops.warp(coeff, x, order),
        lambda x: ops.warp(coeff, coords, order, matrix=x[..., 0]),
        lambda x: ops.compose(coeff[:, :2], x, order),
    ):
        out = run(coords.clone().requires_grad_())
        with pytest.raises((RuntimeError, ValueError), match="order 0"):
            out.sum().backward()
        with pytest.raises((RuntimeError, ValueError), match="order 0"):
            jvp(run, (coords,), (torch.ones_like(coords),))
    image = coeff.clone().requires_grad_()
    ops.pull(image, coords, order).sum().backward()
    assert image.grad is not None


SIZES = [((2, 3, 6, 5), (2, 2, 6, 5)), ((4, 3, 7, 9), (4, 2, 7, 9))]  # one of 1 would be compiled apart


def test_c16_compiled_whole_and_dynamic_equals_eager() -> None:
    def loss(image: Tensor, flow: Tensor) -> Tensor:
        moved = ops.warp(image, flow, 3)
        flow2 = ops.compose(flow, flow)
        return (moved - image).square().mean() + flow2.square().mean() + ops.jacobian_determinant(flow).sum()

    torch._dynamo.reset()
    compiled = torch.compile(loss, fullgraph=True, dynamic=True, backend="aot_eager")
    for image_size, flow_size in SIZES:
        leaves = [torch.randn(image_size), torch.randn(flow_size)]
        results = []
        for f in (loss, compiled):
            image, flow = (x.clone().requires_grad_() for x in leaves)
            value = f(image, flow)
            results.append((value, *torch.autograd.grad(value, (image, flow))))
        torch.testing.assert_close(results[1], results[0], rtol=1e-6, atol=1e-6)


def test_every_operator_compiles_whole() -> None:
    coeff, coords, value = (x.requires_grad_() for x in inputs())

    def run(coeff: Tensor, coords: Tensor, value: Tensor) -> tuple[Tensor, ...]:
        return (
            ops.pull(ops.prefilter(coeff, 3, "dct1"), coords, *OPTIONS),
            ops.push(value, coords, SHAPE, *OPTIONS),
            ops.count(coords, SHAPE, *OPTIONS),
            ops.grad(coeff, coords, *OPTIONS),
            ops.hess(coeff, coords, *OPTIONS),
            ops.warp(coeff, coords, 3, "dct1", "edge", coords[..., 0]),
            ops.integrate(coords, 2, 3),
            ops.compose(coeff[:, :2], coords, 2),
            ops.resize(coeff, (3, 6), order=2),
            ops.resize_flow(coords, factor=2),
            ops.jacobian(coords),
            ops.jacobian_determinant(coords),
            ops.box_sum(coeff, 3),
            ops.Spline(coeff, *OPTIONS[:2]).hessian(coords),
            ops.SamplingOperator(coords, SHAPE, *OPTIONS, prefilter=True, deriv=1)(coeff),  # dynamo traces no @
            ops.SamplingOperator(coords, SHAPE, *OPTIONS, prefilter=True).T(value),
        )

    torch._dynamo.reset()
    compiled = torch.compile(run, fullgraph=True, dynamic=True, backend="aot_eager")
    got, want = compiled(coeff, coords, value), run(coeff, coords, value)
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)
    gradients = [torch.autograd.grad(sum(x.square().sum() for x in out), (coeff, coords, value)) for out in (got, want)]
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-11, atol=1e-11)


def test_order_zero_differentiates_its_image_forward_too() -> None:
    (v, x, _), (dv, _, _) = inputs(), tangents()
    _, tangent = jvp(lambda v: ops.pull(v, x, 0), (v,), (dv,))
    close(tangent, reference.pull(dv, x, 0))


def registered() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Every registered op with arguments, some of which need a gradient."""
    coeff, coords, value = (x.requires_grad_() for x in inputs())
    matrix = torch.eye(2, 3, dtype=torch.float64)[None].expand(2, 2, 3).clone().requires_grad_()
    image = coeff[:1].detach().clone().requires_grad_()
    how = (False, [3, 2], [2, 5], 2)
    return {
        "sample": (torch.ops.regnet.sample, (coeff, coords, None, 0, *how)),
        "sample_1 with a matrix": (torch.ops.regnet.sample, (coeff, coords, matrix, 1, *how)),
        "scatter": (torch.ops.regnet.scatter, (value, coords, None, list(SHAPE), 0, *how)),
        "scatter, image only": (torch.ops.regnet.scatter, (value, coords.detach(), None, list(SHAPE), 0, *how)),
        "contract": (torch.ops.regnet.contract, (coeff, coords, None, value, 0, *how)),
        "contract with a matrix": (torch.ops.regnet.contract, (coeff, coords, matrix, value, 0, *how)),
        "interpolate": (torch.ops.regnet.interpolate, (coeff, coords, None, *how)),
        "interpolate one image with a matrix": (torch.ops.regnet.interpolate, (image, coords, matrix, *how)),
        "prefilter": (torch.ops.regnet.prefilter, (coeff, *how[1:3], False)),
        "box_sum": (torch.ops.regnet.box_sum, (coeff, [3, 1])),
    }


@pytest.mark.parametrize("name", registered())
def test_registered_ops_pass_torchs_own_check(name: str) -> None:
    op, arguments = registered()[name]
    torch.library.opcheck(op, arguments)
