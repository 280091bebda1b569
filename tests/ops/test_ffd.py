"""ffd: the dense sum over control points, what a cubic B-spline reproduces, and its adjoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import jvp, vmap

from regnet import ops
from tests import reference
from tests.ops.cases import CHECK, LAYOUTS, laid_out

# Shape and spacing: whole and not, unequal, below a voxel, wider than the image, a single voxel.
CASES: list[tuple[tuple[int, ...], Any]] = [
    ((13,), 4),
    ((9,), 0.75),
    ((1,), 2.0),
    ((50,), 1),
    ((9, 14), (4, 3)),
    ((12, 7), (2.5, 3.3)),
    ((5, 1), 20.0),
    ((40, 90), (7, 3.1)),
    ((8, 9, 11), 4),
    ((7, 12, 5), (2.2, 0.9, 3)),
    ((1, 6, 30), (1, 2, 3)),
]
every_case = pytest.mark.parametrize(("shape", "spacing"), CASES, ids=str)


def needed(shape: tuple[int, ...], spacing: Any) -> list[int]:
    return [int(np.floor((n - 1) / s)) + 4 for n, s in zip(shape, reference.per_axis(spacing, len(shape)), strict=True)]


def control_points(shape: tuple[int, ...], spacing: Any, more: int = 0, batch: int = 2) -> Tensor:
    grid = [n + more for n in needed(shape, spacing)]
    return torch.randn(batch, len(shape), *grid, dtype=torch.float64)


def nodes(shape: tuple[int, ...], spacing: Any) -> Tensor:
    """``(1, D, *grid)``: the voxel at which each control point lies."""
    steps = torch.tensor(reference.per_axis(spacing, len(shape)), dtype=torch.float64)
    grid = ops.identity(needed(shape, spacing), dtype=torch.float64)
    return (grid - 1) * steps.reshape(1, -1, *[1] * len(shape))


def close(got: Tensor, want: Any, tolerance: float = 1e-12) -> None:
    """Up to ``tolerance`` of the largest value."""
    want = reference.array(want)
    np.testing.assert_allclose(
        got.detach().double().numpy(), want, rtol=0, atol=tolerance * max(1, np.abs(want).max(initial=0))
    )


@every_case
@pytest.mark.parametrize("more", [0, 2])
def test_ffd_is_the_dense_sum_over_the_control_points(shape: tuple[int, ...], spacing: Any, more: int) -> None:
    control = control_points(shape, spacing, more)
    got = ops.ffd(control, shape, spacing)
    assert got.shape == (2, len(shape), *shape) and got.is_contiguous()
    close(got, reference.ffd(control, shape, spacing))
    single = ops.ffd(control.float(), shape, spacing)
    assert single.dtype == torch.float32
    close(single, reference.ffd(control.float(), shape, spacing), 1e-5)


@every_case
@pytest.mark.parametrize("bound", ["zero", "dft", "dst1"])
def test_ffd_is_a_cubic_pull_in_which_no_tap_leaves_the_control_grid(
    shape: tuple[int, ...], spacing: Any, bound: str
) -> None:
    control = control_points(shape, spacing)
    steps = torch.tensor(reference.per_axis(spacing, len(shape)), dtype=torch.float64)
    coords = ops.identity(shape, dtype=torch.float64) / steps.reshape(1, -1, *[1] * len(shape)) + 1
    close(ops.ffd(control, shape, spacing), ops.pull(control, coords, 3, bound))


@every_case
def test_control_points_that_move_alike_move_everything_alike(shape: tuple[int, ...], spacing: Any) -> None:
    move = torch.arange(1.0, len(shape) + 1, dtype=torch.float64).reshape(1, -1, *[1] * len(shape))
    control = move.expand(2, -1, *needed(shape, spacing))
    close(ops.ffd(control, shape, spacing), move.expand(2, -1, *shape), 1e-14)


@every_case
def test_control_points_on_a_linear_map_reproduce_it(shape: tuple[int, ...], spacing: Any) -> None:
    matrix = torch.randn(len(shape), len(shape), dtype=torch.float64)
    control = torch.einsum("ij,nj...->ni...", matrix, nodes(shape, spacing))
    want = torch.einsum("ij,nj...->ni...", matrix, ops.identity(shape, dtype=torch.float64))
    close(ops.ffd(control, shape, spacing), want, 1e-13)


def test_points_beyond_those_needed_do_nothing() -> None:
    control = control_points((9, 14), (4, 3), more=3)
    fewer = control[..., :-3, :-3]
    assert torch.equal(ops.ffd(control, (9, 14), (4, 3)), ops.ffd(fewer, (9, 14), (4, 3)))


@every_case
@pytest.mark.parametrize("more", [0, 2])
def test_the_backward_is_the_exact_adjoint(shape: tuple[int, ...], spacing: Any, more: int) -> None:
    control = control_points(shape, spacing, more).requires_grad_()
    field = ops.ffd(control, shape, spacing)
    y = torch.randn_like(field)
    (back,) = torch.autograd.grad(field, control, y)
    gap = ((field * y).sum() - (control * back).sum()).abs()
    assert gap <= 1e-13 * field.norm() * y.norm()
    matrices = reference.ffd_matrices(control.shape[2:], shape, spacing)
    close(back, reference.along_all([m.T for m in matrices], reference.array(y)))


@pytest.mark.parametrize(("shape", "spacing"), [((5,), 2), ((4, 3), (1.5, 2))], ids=str)
def test_finite_differences_agree_with_every_mode(shape: tuple[int, ...], spacing: Any) -> None:
    control = control_points(shape, spacing, batch=1).requires_grad_()
    modes = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}
    assert gradcheck(lambda c: ops.ffd(c, shape, spacing), (control,), **CHECK, **modes)
    assert gradgradcheck(lambda c: ops.ffd(c, shape, spacing).square(), (control,), **CHECK, check_fwd_over_rev=True)


def test_a_linear_operator_is_its_own_jvp_and_its_vmap_a_loop() -> None:
    control = control_points((6, 7), (3, 2.5), batch=4)
    out, tangent = jvp(lambda c: ops.ffd(c, (6, 7), (3, 2.5)), (control[:2],), (control[2:],))
    assert torch.equal(torch.cat([out, tangent]), ops.ffd(control, (6, 7), (3, 2.5)))
    many = control.reshape(2, 2, *control.shape[1:])
    got = vmap(lambda c: ops.ffd(c, (6, 7), (3, 2.5)))(many)
    torch.testing.assert_close(got.flatten(0, 1), ops.ffd(control, (6, 7), (3, 2.5)), rtol=0, atol=0)


def test_compiled_whole_and_dynamic_equals_eager() -> None:
    def run(control: Tensor, image: Tensor) -> Tensor:
        return ops.warp(image, ops.ffd(control, image.shape[2:], (4, 2.5)))

    torch._dynamo.reset()
    compiled = torch.compile(run, fullgraph=True, dynamic=True, backend="aot_eager")
    for shape, batch in (((9, 14), 2), ((11, 8), 3)):
        control = control_points(shape, (4, 2.5), 1, batch).requires_grad_()
        image = torch.randn(batch, 1, *shape, dtype=torch.float64)
        got, want = (torch.autograd.grad(f(control, image).square().sum(), control) for f in (compiled, run))
        torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_strides_do_not_change_a_single_bit_and_the_input_stays(layout: str) -> None:
    given = laid_out(control_points((9, 8, 7), (3, 2, 4)).float(), layout)
    kept = given.clone()
    assert torch.equal(ops.ffd(given, (9, 8, 7), (3, 2, 4)), ops.ffd(kept.contiguous(), (9, 8, 7), (3, 2, 4)))
    assert torch.equal(given, kept)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_types_are_stored_only(dtype: torch.dtype) -> None:
    control = control_points((9, 14), 4).to(dtype)
    assert torch.equal(ops.ffd(control, (9, 14), 4), ops.ffd(control.float(), (9, 14), 4).to(dtype))


@pytest.mark.parametrize(
    ("shape", "spacing"), [((45, 44, 47), (4, 3.5, 5)), ((300, 310), (4, 2.2)), ((90_000,), 3)], ids=str
)
def test_field_and_gradient_are_bit_identical_for_any_number_of_threads(shape: tuple[int, ...], spacing: Any) -> None:
    control = control_points(shape, spacing, batch=1).float().requires_grad_()
    y = torch.randn(1, len(shape), *shape)
    results = []
    for threads in (1, 2, 3, 8, 8):
        torch.set_num_threads(threads)
        field = ops.ffd(control, shape, spacing)
        results.append((field, *torch.autograd.grad(field, control, y)))
    for result in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(result, results[0], strict=True))


def test_too_few_points_are_told_how_many_are_needed() -> None:
    control = torch.zeros(1, 3, 6, 6, 7)
    ops.ffd(control, (8, 9, 10), (4, 4, 3))  # floor(7/4) + 4 = 5, floor(8/4) + 4 = 6, floor(9/3) + 4 = 7
    for shape, spacing in (((8, 13, 10), (4, 4, 3)), ((8, 9, 10), (4, 2.5, 3))):  # floor(12/4) + 4, floor(8/2.5) + 4
        with pytest.raises(ValueError, match=r"\(5, 7, 7\).*\(6, 6, 7\)"):
            ops.ffd(control, shape, spacing)


def test_empty_batches_and_empty_fields_pass_through() -> None:
    assert ops.ffd(torch.zeros(0, 2, 6, 7), (9, 10), (4, 3)).shape == (0, 2, 9, 10)
    control = torch.randn(1, 2, 6, 7, requires_grad=True)
    field = ops.ffd(control, (0, 10), (4, 3))
    assert field.shape == (1, 2, 0, 10)
    assert torch.equal(torch.autograd.grad(field.sum(), control)[0], torch.zeros_like(control))
