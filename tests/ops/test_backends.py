"""The kernels in plain torch: the laws of the compiled ones hold for them, and both give the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from regnet import ops
from regnet.ops import _core, _torch, _torch_lines
from regnet.ops.options import KEYS
from tests import reference
from tests.ops import test_derivatives, test_errors, test_fields, test_sampling, test_torch_compat
from tests.ops.cases import CHECK, Case, drawn


@contextmanager
def plain_torch() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_core, "backend", lambda device: "torch")
        yield


@pytest.fixture
def plain() -> Iterator[None]:
    with plain_torch():
        yield


def agree(run: Callable[[], Any], tolerance: float = 1e-12) -> None:
    """Both backends give the same."""
    want = run()
    with plain_torch():
        got = run()
    torch.testing.assert_close(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("case", drawn(60, seed=11), ids=str)
def test_plain_torch_equals_the_dense_sums(case: Case) -> None:
    test_sampling.check_pull(case)
    test_sampling.check_push(case)
    test_sampling.check_count(case)
    for degree in (1, 2) if min(case.orders) > 0 else ():
        test_sampling.check_derivative(case, degree)


@pytest.mark.parametrize("case", drawn(60, seed=12), ids=str)
def test_both_backends_give_the_same_samples_sums_and_gradients(case: Case) -> None:
    ndim, order, bound = case.ndim, case.orders, case.options[1]
    coeff, coords, value = case.coeff().double(), case.coords().double(), case.value().double()
    matrix = torch.eye(ndim, ndim + 1).double().add(0.1 * torch.randn(case.batch, ndim, ndim + 1)).requires_grad_()
    leaves = [coeff.requires_grad_(), coords.requires_grad_(0 not in order), matrix.requires_grad_(0 not in order)]

    def run() -> tuple[Tensor, ...]:
        moved = ops.warp(coeff, coords, list(order), bound, case.extrapolate, matrix)
        pushed = ops.push(value, coords, case.shape, list(order), bound, case.extrapolate)
        wanted = [x for x in leaves if x.requires_grad]
        loss = moved.square().sum() + pushed.square().sum()
        return (moved, pushed, *torch.autograd.grad(loss, wanted))

    agree(run, 1e-11)


def test_c20_a_cubic_warp_is_the_same_with_and_without_the_compiled_module() -> None:
    image = torch.randn(1, 1, 12, 12, 12)
    flow = 1.5 * torch.sin(0.4 * ops.identity((12, 12, 12)).flip(1))
    agree(lambda: ops.warp(image, flow, order=3, bound="dct2"), 1e-5)


@pytest.mark.parametrize("bound", reference.BOUNDS)
def test_both_backends_filter_resize_and_restrict_alike(bound: str) -> None:
    image = torch.randn(2, 2, 7, 1, 9, dtype=torch.float64, requires_grad=True)
    for order in range(8):

        def run(order: int = order) -> tuple[Tensor, ...]:
            filtered = ops.prefilter(image, [order, 3, 2], bound)
            finer = ops.resize(image, (5, 3, 14), order=order, bound=bound, anchor="centers")
            coarser = ops.restrict(image, (3, 1, 4), order=order, bound=bound)
            loss = filtered.square().sum() + finer.square().sum() + coarser.square().sum()
            return filtered, finer, coarser, *torch.autograd.grad(loss, image)

        agree(run)


def test_a_missing_voxel_spoils_the_same_resized_voxels() -> None:
    image = torch.randn(1, 1, 9, 4)
    image[..., 4, 2] = torch.nan
    agree(lambda: ops.resize(image, (18, 4), prefilter=False), 1e-6)
    agree(lambda: ops.restrict(image, (3, 4), prefilter=False), 1e-6)


def test_both_backends_sum_windows_alike() -> None:
    image = torch.randn(2, 3, 6, 1, 11)
    agree(lambda: ops.box_sum(image, (5, 3, 21)), 1e-6)


@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int64, torch.uint64], ids=str
)
def test_both_backends_count_the_votes_alike(dtype: torch.dtype) -> None:
    high = 1 if dtype == torch.bool else torch.iinfo(dtype).max
    labels = torch.randint(0, 3, (2, 1, 4, 5, 6))
    labels = torch.where(labels == 2, high if high < 2**63 else -1, labels).to(dtype)
    flow = torch.randint(-8, 9, (2, 3, 4, 5, 6)) / 4  # many ties
    flow[0, 1, 0, :2, 0] = torch.tensor([torch.nan, torch.inf])
    for mode in ("nearest", "linear"):
        agree(lambda mode=mode: ops.warp_labels(labels, flow, mode, background=1).long())


LAWS: list[tuple[Callable[..., None], tuple[Any, ...]]] = [
    *((test_errors.test_non_finite_and_huge_coordinates_give_nan_or_zero, (b, 3)) for b in reference.BOUNDS),
    *(
        (test_errors.test_invalid_coordinates_have_no_gradient_even_under_a_nan_cotangent, (b, 2))
        for b in reference.BOUNDS
    ),
    *((test_errors.test_coordinates_just_below_the_limit_stay_in_the_buffer, (b,)) for b in reference.BOUNDS),
    *((test_errors.test_empty_images_give_empty_results_and_empty_gradients, ("hess", s)) for s in ((0, 2), (2, 0))),
    (test_errors.test_no_coordinates_give_no_samples_and_zero_gradients, ("grad",)),
    (test_errors.test_pushing_nothing_gives_zeros, ()),
    (test_errors.test_other_operators_pass_empty_batches_through, ()),
    (test_errors.test_nan_voxels_reach_the_samples_that_use_them_only, ()),
    (test_errors.test_inputs_are_left_as_they_were, ()),
    (test_fields.test_infinite_displacements_are_out_of_view_under_a_matrix_too, (2,)),
    (test_sampling.test_nearest_ties_go_up, ()),
    *((test_sampling.test_derivatives_at_the_knots_are_those_from_the_right, (o, "dst1")) for o in range(1, 8)),
    *((test_sampling.test_pull_at_voxel_centres_is_exact, (b, 1, torch.float32)) for b in reference.BOUNDS),
    (test_derivatives.test_the_jvp_of_pull_is_its_two_directional_derivatives, ()),
    (test_derivatives.test_vmap_is_a_loop, ("grad", (0, None))),
    (test_derivatives.test_func_hessian_is_the_hessian_of_the_spline, ("hessian",)),
    (test_derivatives.test_order_zero_refuses_to_differentiate_its_coordinates, (0,)),
    (test_derivatives.test_every_operator_compiles_whole, ()),
    *((test_derivatives.test_registered_ops_pass_torchs_own_check, (n,)) for n in test_derivatives.registered()),
    (test_torch_compat.test_gradients_are_the_finite_differences, ((7,), (9,), "bicubic", "reflection", True)),
]


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize(("law", "arguments"), LAWS, ids=lambda x: getattr(x, "__name__", str(x)))
def test_plain_torch_obeys(law: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    law(*arguments)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize(("order", "ndim"), [(1, 2), (3, 1), (2, 2)])
def test_derivatives_in_plain_torch_are_finite_differences(order: int, ndim: int) -> None:
    coeff, coords, value, shape, options = test_sampling.tiny(order, "dst2", ndim)
    for op, image in ((ops.pull, coeff), (ops.grad, coeff), (lambda y, x, *o: ops.push(y, x, shape, *o), value)):
        assert gradcheck(lambda v, x, op=op: op(v, x, *options), (image, coords), check_forward_ad=True, **CHECK)
        assert gradgradcheck(lambda v, x, op=op: op(v, x, *options), (image, coords), **CHECK)


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_nothing_in_plain_torch_leaves_the_device_or_asks_it_for_a_number(ndim: int) -> None:
    """On the meta device a number that is asked for, or a tensor that was made elsewhere, is an error."""
    shape, out = (6, 5, 4)[:ndim], (3, 2, 7)[:ndim]
    coeff, coords = torch.empty(2, 3, *shape, device="meta"), torch.empty(2, ndim, *out, device="meta")
    matrix = torch.empty(2, ndim, ndim + 1, device="meta")
    for bound, order in enumerate((0, 1, 2, 3, KEYS, 1, 2) if ndim == 1 else (1,) * 7):
        how: tuple[Any, ...] = (True, [order] * ndim, [bound] * ndim, bound % 3)
        for k in range(2):
            value = torch.empty(2, 3, *[ndim] * k, *out, device="meta")
            assert _torch.sample(coeff, coords, matrix, k, *how).shape == value.shape
            assert _torch.scatter(value, coords, matrix, list(shape), k, *how).shape == coeff.shape
            assert _torch.contract(coeff, coords, matrix, value, k, *how).shape == coords.shape
        if order < KEYS:
            _torch_lines.prefilter(coeff, torch.empty_like(coeff), [order] * ndim, [bound] * ndim, False)
            moved = torch.empty(2, 3, *out, device="meta")
            ramps = ([order] * ndim, [bound] * ndim, [1.0] * ndim, [2] * ndim, [1] * ndim, [3] * ndim)
            _torch_lines.lattice(coeff, moved, list(out), *ramps, False)
            _torch_lines.lattice(moved, torch.empty_like(coeff), list(shape), *ramps, True)
    _torch_lines.box_sum(coeff, torch.empty_like(coeff), [3] * ndim)
    labels = torch.empty(2, 1, *shape, device="meta", dtype=torch.uint8)
    assert _torch.vote(labels, coords, matrix, 1, 0).shape == (2, 1, *out)


def test_a_device_without_a_module_is_served_with_a_warning_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    choose = _core.backend.__wrapped__
    monkeypatch.delenv("REGNET_BACKEND", raising=False)
    assert choose("cpu") == "native"
    with pytest.warns(UserWarning, match="plain torch computes.*no compiled operators for xpu"):
        assert choose("xpu") == "torch"
    monkeypatch.setenv("REGNET_BACKEND", "torch")
    assert choose("cpu") == choose("xpu") == "torch"
    monkeypatch.setenv("REGNET_BACKEND", "native")
    assert choose("cpu") == "native"
    with pytest.raises(RuntimeError, match="no compiled operators for xpu"):
        choose("xpu")
    monkeypatch.setenv("REGNET_BACKEND", "cuda")
    with pytest.raises(RuntimeError, match="one of native, torch, got 'cuda'"):
        choose("cpu")


def test_no_operator_makes_a_tensor_on_another_device() -> None:
    image, flow = torch.empty(2, 2, 6, 5, device="meta"), torch.empty(2, 2, 6, 5, device="meta")
    matrix, labels = torch.empty(1, 2, 3, device="meta"), torch.empty(2, 1, 6, 5, device="meta", dtype=torch.int16)
    for x in (
        ops.warp(image, flow, 3, matrix=matrix),
        ops.push(image, flow, (6, 5)),
        ops.count(flow, (6, 5)).expand(-1, 2, -1, -1),
        ops.integrate(flow, 2),
        ops.box_sum(image, 3),
        ops.resize(ops.resize(image, factor=2, order=3), (6, 5)),
        ops.restrict(image, (6, 5), order=2, normalize=True),
        ops.resize_flow(flow, (6, 5)),
        ops.ffd(flow, (6, 5), 4.0),
        ops.jacobian(flow)[:, 0],
        ops.grid_sample(image, flow.movedim(1, -1), "bicubic"),
        ops.grid_sample_adjoint(image, flow.movedim(1, -1), (6, 5), "nearest"),
        ops.Spline(image).gradient(flow)[:, 0],
        ops.warp_labels(labels, flow, "linear", matrix).expand(-1, 2, -1, -1),
    ):
        assert (x.device.type, x.shape) == ("meta", (2, 2, 6, 5))
    assert ops.SamplingOperator(flow, (3, 2)).dense().device.type == "meta"
