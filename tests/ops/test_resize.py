"""resize, resize_flow and restrict: closed forms, and the dense matrices of the oracle."""

from __future__ import annotations

import inspect
import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import jvp, vmap

from regnet import ops
from tests import reference
from tests.ops.cases import CHECK, LAYOUTS, constant, f64, laid_out

SHAPES = [(9,), (5, 6), (4, 5, 3)]
SIZES = [(7, 2, 8), (3, 11, 4), (1, 5, 1), (20, 1, 3), (4, 6, 5)]  # grown, shrunk, kept, a single voxel
ANCHORS = ["edges", "centers"]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)
every_anchor = pytest.mark.parametrize("anchor", ANCHORS)
every_order = pytest.mark.parametrize("order", reference.ORDERS)
every_bound = pytest.mark.parametrize("bound", reference.BOUNDS)


def close(got: Tensor, want: Any, tolerance: float = 1e-12) -> None:
    """Up to ``tolerance`` of the largest value."""
    want = reference.array(want)
    np.testing.assert_allclose(
        got.detach().double().numpy(), want, rtol=0, atol=tolerance * max(1, np.abs(want).max(initial=0))
    )


# resize


def test_c8_edges_or_centres_are_aligned() -> None:
    line = f64([[[0, 1, 2]]])
    edges = ops.resize(line, (6,), bound="replicate")
    close(edges.flatten(), [0, 0.25, 0.75, 1.25, 1.75, 2], 1e-15)
    assert torch.equal(ops.resize(line, factor=2, bound="replicate"), edges)
    close(ops.resize(line, (5,), anchor="centers", bound="replicate").flatten(), [0, 0.5, 1, 1.5, 2], 1e-15)


@every_shape
@every_anchor
def test_c8_resizing_to_the_same_shape_is_the_identity(shape: tuple[int, ...], anchor: str) -> None:
    image = torch.randn(2, 3, *shape)
    for order in (0, 1):
        out = ops.resize(image, shape, anchor=anchor, order=order)
        assert torch.equal(out, image) and out.data_ptr() != image.data_ptr()
    torch.testing.assert_close(ops.resize(image, shape, anchor=anchor, order=3), image, rtol=1e-5, atol=1e-5)


def test_c9_the_three_share_their_defaults_and_an_argument_given_is_the_one_used() -> None:
    shared = ("anchor", "order", "bound", "prefilter")
    defaults = [
        [inspect.signature(f).parameters[name].default for name in shared]
        for f in (ops.resize, ops.resize_flow, ops.restrict)
    ]
    assert defaults[0] == defaults[1] == defaults[2]
    flow = torch.randn(1, 2, 4, 5, dtype=torch.float64)
    for anchor, order, bound, prefilter in itertools.product(ANCHORS, (0, 3), ("dct1", "zero"), (True, False)):
        options: tuple[Any, ...] = (anchor, order, bound, prefilter)
        want = reference.resize(flow, (8, 10), *options)
        close(ops.resize(flow, (8, 10), None, *options), want)
        gain = reference.array([2, 2] if anchor == "edges" else [7 / 3, 9 / 4]).reshape(1, 2, 1, 1)
        close(ops.resize_flow(flow, (8, 10), None, *options), want * gain)


@every_order
@every_bound
@every_anchor
def test_resize_equals_the_dense_matrices_along_every_axis(order: int, bound: str, anchor: str) -> None:
    for shape, sizes, dtype in itertools.product(SHAPES, SIZES, (torch.float64, torch.float32)):
        image, new = torch.randn(2, 3, *shape, dtype=dtype), sizes[: len(shape)]
        for prefilter in (True, False):
            got = ops.resize(image, new, None, anchor, order, bound, prefilter)
            assert got.dtype == dtype and got.is_contiguous()
            want = reference.resize(image, new, anchor, order, bound, prefilter)
            size = np.abs(reference.prefilter(image, order, bound) if prefilter else image.numpy()).max()
            assert reference.error(got, want, size) <= (1e-12 if dtype == torch.float64 else 1e-5), (shape, new)


def test_orders_and_bounds_may_differ_by_axis() -> None:
    image = torch.randn(2, 2, 4, 5, 3, dtype=torch.float64)
    options: tuple[Any, ...] = ("edges", [3, 0, 6], ["dst1", "zero", "replicate"])
    close(ops.resize(image, (7, 9, 2), None, *options), reference.resize(image, (7, 9, 2), *options))
    fine = torch.randn(2, 2, 7, 9, 2, dtype=torch.float64)
    close(ops.restrict(fine, (4, 5, 3), *options), reference.restrict(fine, (4, 5, 3), *options))


@pytest.mark.parametrize("shape", [(40, 50, 60), (3, 70, 90), (3, 700, 2), (600, 17), (1200,), (1, 1, 300)], ids=str)
def test_rows_longer_than_a_vector_and_a_cache_piece_are_the_dense_sums_too(shape: tuple[int, ...]) -> None:
    image = torch.randn(2, 9, *shape, dtype=torch.float64)
    new = tuple(max(1, int(n * f)) for n, f in zip(shape, (1.3, 0.4, 1.7), strict=False))
    close(ops.resize(image, new, order=3, bound="dct1"), reference.resize(image, new, "edges", 3, "dct1"))
    close(ops.restrict(image, new, order=2, bound="dft"), reference.restrict(image, new, "edges", 2, "dft"), 1e-11)


def test_a_tie_of_order_zero_goes_up_at_any_ratio() -> None:
    line = torch.arange(6.0)[None, None]  # at ((p + 1/2) 6/9 - 1/2): p = 1, 4, 7 lie half-way between voxels
    assert ops.resize(line, (9,), order=0).flatten().tolist() == [0, 1, 1, 2, 3, 3, 4, 5, 5]
    for n, m in itertools.product(range(1, 30), range(1, 30)):
        want = [min(n - 1, (2 * p + 1) * n // (2 * m)) for p in range(m)]  # floor(x + 1/2), in integers
        got = ops.resize(torch.arange(float(n))[None, None], (m,), order=0, bound="replicate")
        assert got.flatten().tolist() == want, (n, m)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_strides_do_not_change_a_single_bit_and_the_input_stays(layout: str) -> None:
    given = laid_out(torch.randn(2, 3, 4, 5, 6), layout)
    kept = given.clone()
    for call in (lambda x: ops.resize(x, (8, 3, 9), order=2), lambda x: ops.restrict(x, (3, 5, 7), normalize=True)):
        assert torch.equal(call(given), call(kept.contiguous()))
        assert torch.equal(given, kept)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_types_are_stored_only(dtype: torch.dtype) -> None:
    image = torch.randn(1, 2, 5, 6).to(dtype)
    for call in (lambda x: ops.resize(x, (9, 4), order=3), lambda x: ops.restrict(x, (3, 4), normalize=True)):
        assert torch.equal(call(image), call(image.float()).to(dtype))


def test_a_factor_per_axis_rounds_the_shape() -> None:
    image = torch.randn(1, 1, 8, 12, 5)
    assert ops.resize(image, factor=(2, 0.5, 1.5)).shape == (1, 1, 16, 6, 8)
    assert ops.resize_flow(torch.zeros(1, 3, 8, 12, 5), factor=(2, 0.5, 1.5)).shape == (1, 3, 16, 6, 8)


def test_c23_a_resized_field_is_scaled_along_each_axis_by_its_own_factor() -> None:
    flow = constant((1.0, 1.0), (8, 12))
    for anchor, want in {"edges": (2, 3), "centers": (15 / 7, 35 / 11)}.items():
        close(ops.resize_flow(flow, (16, 36), anchor=anchor), constant(want, (16, 36)))
    ramp = 0.5 * torch.arange(8, dtype=torch.float64)[None, None]
    new = torch.arange(16, dtype=torch.float64)[None, None]
    close(ops.resize_flow(ramp, (16,))[..., 1:15], (0.5 * new - 0.25)[..., 1:15])
    close(ops.resize_flow(ramp, (16,), anchor="centers"), 0.5 * new)


# restrict


@every_order
@every_bound
@every_anchor
def test_restrict_is_the_exact_adjoint_of_resize(order: int, bound: str, anchor: str) -> None:
    for shape, fine in itertools.product(SHAPES, SIZES):
        size = fine[: len(shape)]
        x = torch.randn(2, 2, *shape, dtype=torch.float64, requires_grad=True)
        y = torch.randn(2, 2, *size, dtype=torch.float64, requires_grad=True)
        for prefilter in (True, False):
            options: tuple[Any, ...] = (anchor, order, bound, prefilter)
            up, down = ops.resize(x, size, None, *options), ops.restrict(y, shape, *options)
            gap = ((up * y).sum() - (x * down).sum()).abs()
            assert gap <= 1e-13 * max(up.norm() * y.norm(), x.norm() * down.norm())
            close(down, reference.restrict(y, shape, *options))
            assert torch.equal(torch.autograd.grad(up, x, y.detach())[0], down)
            assert torch.equal(torch.autograd.grad(down, y, x.detach())[0], up)


def test_b14_a_normalised_restriction_keeps_a_constant() -> None:
    # Of factor 2, each coarse voxel is seen with weights 1/4, 3/4, 3/4, 1/4 (at the ends the fold adds the missing
    # quarters): the sum is 2, the mean 1. A peer gives 4.
    ones = torch.ones(1, 1, 16)
    assert torch.equal(ops.restrict(ones, (8,)), torch.full((1, 1, 8), 2.0))
    assert torch.equal(ops.restrict(ones, (8,), normalize=True), torch.ones(1, 1, 8))
    for order, bound, anchor in itertools.product(range(8), ("replicate", "dct1", "dct2"), ANCHORS):
        image = torch.full((2, 3, 12, 9), 7.0, dtype=torch.float64)
        got = ops.restrict(image, (5, 4), anchor, order, bound, normalize=True)
        torch.testing.assert_close(got, torch.full_like(got, 7.0), rtol=1e-12, atol=0)


def test_a_coarse_voxel_that_nothing_falls_on_is_zero() -> None:
    # Eight voxels resized to two take samples at 1.5 and 5.5, of order 0 voxels 2 and 6.
    got = ops.restrict(torch.tensor([[[3.0, 4.0]]]), (8,), order=0, normalize=True)
    assert got.flatten().tolist() == [0, 0, 3, 0, 0, 0, 4, 0]


# derivatives


def operators() -> dict[str, Any]:
    return {
        "resize": lambda x: ops.resize(x, (5, 3), order=[3, 2], bound=["dct1", "dst2"]),
        "resize_flow": lambda x: ops.resize_flow(x, (2, 5), anchor="centers"),
        "restrict": lambda x: ops.restrict(x, (2, 3), order=3, bound="replicate"),
        "normalised restrict": lambda x: ops.restrict(x, (2, 7), normalize=True),
    }


@pytest.mark.parametrize("name", operators())
def test_finite_differences_agree_with_every_mode(name: str) -> None:
    op = operators()[name]
    image = torch.randn(1, 2, 3, 4, dtype=torch.float64, requires_grad=True)
    modes = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}
    assert gradcheck(op, (image,), **CHECK, **modes)
    assert gradgradcheck(lambda x: op(x).square(), (image,), **CHECK, check_fwd_over_rev=True)


@pytest.mark.parametrize("name", operators())
def test_a_linear_operator_is_its_own_jvp_and_its_vmap_a_loop(name: str) -> None:
    op = operators()[name]
    x, dx = torch.randn(2, 3, 2, 3, 4, dtype=torch.float64)
    out, tangent = jvp(op, (x,), (dx,))
    assert torch.equal(out, op(x)) and torch.equal(tangent, op(dx))
    many = torch.randn(2, 4, 2, 3, 4, dtype=torch.float64)
    torch.testing.assert_close(vmap(op, 1)(many), torch.stack([op(x) for x in many.unbind(1)]), rtol=0, atol=0)


def test_compiled_whole_and_dynamic_equals_eager() -> None:
    def run(image: Tensor, flow: Tensor) -> Tensor:
        shape = [2 * n - 1 for n in image.shape[2:]]
        up = ops.resize(image, shape, order=3)
        down = ops.restrict(up, image.shape[2:], normalize=True)
        return (down - image).square().sum() + ops.resize_flow(flow, factor=2).square().sum()

    torch._dynamo.reset()
    compiled = torch.compile(run, fullgraph=True, dynamic=True, backend="aot_eager")
    for size in ((2, 2, 6, 5), (3, 2, 7, 9)):
        leaves = [torch.randn(size, dtype=torch.float64, requires_grad=True) for _ in range(2)]
        got, want = (torch.autograd.grad(f(*leaves), leaves) for f in (compiled, run))
        torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("adjoint", [False, True])
def test_the_registered_op_passes_torchs_own_check(adjoint: bool) -> None:
    image = torch.randn(1, 2, 3, 4, dtype=torch.float64, requires_grad=True)
    arguments = ([5, 2], [3, 0], [2, 5], [1.0, 2.5], [1, 2], [3, 0], [2, 1], adjoint)
    torch.library.opcheck(torch.ops.regnet.lattice, (image, *arguments))


# threads


@pytest.mark.parametrize(
    ("shape", "new"),
    [
        ((23, 21, 25), (45, 44, 47)),  # some 93,000 voxels: enough for eight threads to start
        ((45, 44, 47), (17, 60, 20)),
        ((60, 70, 20), (60, 70, 11)),
        ((300, 310), (311, 200)),
        ((90_000,), (70_001,)),
        ((90_000, 1), (70_001, 2)),
    ],
    ids=str,
)
def test_results_are_bit_identical_for_any_number_of_threads(shape: tuple[int, ...], new: tuple[int, ...]) -> None:
    image, fine = torch.randn(1, 3, *shape), torch.randn(1, 3, *new)
    results = []
    for threads in (1, 2, 3, 8, 8):
        torch.set_num_threads(threads)
        results.append((ops.resize(image, new, order=3), ops.restrict(fine, shape, order=3, normalize=True)))
    for result in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(result, results[0], strict=True))
