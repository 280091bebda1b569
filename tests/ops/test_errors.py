"""What the operators refuse, in one line, and the odd inputs they accept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from regnet import ops
from tests import reference
from tests.ops.cases import off_knots

IMAGE, FLOW, LABELS = torch.zeros(2, 3, 4, 5), torch.zeros(2, 2, 4, 5), torch.zeros(2, 1, 4, 5, dtype=torch.int32)
NAN, INF = float("nan"), float("inf")

# What is called, and what its message must name.
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "pull: image of 2 axes": (lambda: ops.pull(IMAGE[0, 0], FLOW), r"\(4, 5\)"),
    "pull: four spatial axes": (
        lambda: ops.pull(torch.zeros(1, 1, 2, 2, 2, 2), torch.zeros(1, 4, 2, 2, 2, 2)),
        "1 to 3",
    ),
    "pull: coordinates of another dimension": (
        lambda: ops.pull(IMAGE, torch.zeros(2, 3, 4, 5, 6)),
        "3 spatial axes",
    ),
    "pull: coordinates without a channel per axis": (lambda: ops.pull(IMAGE, FLOW[:, :1]), r"\(2, 1, 4, 5\)"),
    "pull: batches": (lambda: ops.pull(IMAGE, torch.zeros(3, 2, 4, 5)), "batch"),
    "pull: integer image": (lambda: ops.pull(IMAGE.int(), FLOW), "int32"),
    "pull: integer coordinates": (lambda: ops.pull(IMAGE, FLOW.long()), "int64"),
    "pull: complex image": (lambda: ops.pull(IMAGE.to(torch.complex64), FLOW), "complex64"),
    "pull: two devices": (lambda: ops.pull(IMAGE, FLOW.to("meta")), "device"),
    "pull: no tensor": (lambda: ops.pull(IMAGE.numpy(), FLOW), "ndarray"),
    "pull: order too high": (lambda: ops.pull(IMAGE, FLOW, 8), "8"),
    "pull: negative order": (lambda: ops.pull(IMAGE, FLOW, -1), "-1"),
    "pull: fractional order": (lambda: ops.pull(IMAGE, FLOW, 1.5), r"1\.5"),
    "pull: number of orders": (lambda: ops.pull(IMAGE, FLOW, [1, 2, 3]), r"\[1, 2, 3\]"),
    "pull: order by name": (lambda: ops.pull(IMAGE, FLOW, "cubic"), "cubic"),
    "pull: unknown bound": (lambda: ops.pull(IMAGE, FLOW, 1, "edge"), "edge"),
    "pull: number of bounds": (lambda: ops.pull(IMAGE, FLOW, 1, ["dct2"]), "dct2"),
    "pull: bound of another type": (lambda: ops.pull(IMAGE, FLOW, 1, 3), "3"),
    "pull: unknown extrapolation": (lambda: ops.pull(IMAGE, FLOW, 1, "dct2", "centre"), "centre"),
    "pull: extrapolation by number": (lambda: ops.pull(IMAGE, FLOW, 1, "dct2", 2), "2"),
    "push: shapes differ": (lambda: ops.push(IMAGE[..., 1:], FLOW, (4, 5)), r"\(2, 3, 4, 4\)"),
    "push: number of sizes": (lambda: ops.push(IMAGE, FLOW, (4, 5, 6)), r"\(4, 5, 6\)"),
    "push: negative size": (lambda: ops.push(IMAGE, FLOW, (4, -5)), "-5"),
    "push: fractional size": (lambda: ops.push(IMAGE, FLOW, (4, 5.5)), r"5\.5"),
    "push: batches": (lambda: ops.push(IMAGE, torch.zeros(3, 2, 4, 5), (4, 5)), "batch"),
    "count: coordinates without a channel per axis": (lambda: ops.count(FLOW[:, :1], (4, 5)), r"\(2, 1, 4, 5\)"),
    "count: number of sizes": (lambda: ops.count(FLOW, (4,)), r"\(4,\)"),
    "grad: order 0": (lambda: ops.grad(IMAGE, FLOW, 0), "order"),
    "grad: order 0 on one axis": (lambda: ops.grad(IMAGE, FLOW, [1, 0]), "order"),
    "hess: order 0": (lambda: ops.hess(IMAGE, FLOW, 0), "order"),
    "prefilter: image of 2 axes": (lambda: ops.prefilter(IMAGE[0, 0]), r"\(4, 5\)"),
    "prefilter: integer image": (lambda: ops.prefilter(IMAGE.int()), "int32"),
    "prefilter: order too high": (lambda: ops.prefilter(IMAGE, 8), "8"),
    "prefilter: unknown bound": (lambda: ops.prefilter(IMAGE, 3, "nowhere"), "nowhere"),
    "warp: flow without a channel per axis": (lambda: ops.warp(IMAGE, FLOW[:, :1]), r"\(2, 1, 4, 5\)"),
    "warp: flow of another dimension": (lambda: ops.warp(IMAGE, torch.zeros(2, 3, 4, 5, 6)), "3 spatial axes"),
    "warp: batches": (lambda: ops.warp(IMAGE, torch.zeros(3, 2, 4, 5)), "batch"),
    "warp: square matrix": (lambda: ops.warp(IMAGE, FLOW, matrix=torch.eye(2)[None]), r"\(1, 2, 2\)"),
    "warp: matrix without batch": (lambda: ops.warp(IMAGE, FLOW, matrix=torch.eye(2, 3)), r"\(2, 3\)"),
    "warp: matrix of another batch": (lambda: ops.warp(IMAGE, FLOW, matrix=torch.eye(2, 3).expand(3, 2, 3)), "3"),
    "warp_labels: labels that are no integers": (lambda: ops.warp_labels(IMAGE[:, :1], FLOW), "float32"),
    "warp_labels: several channels": (lambda: ops.warp_labels(IMAGE.int(), FLOW), r"\(2, 3, 4, 5\)"),
    "warp_labels: no tensor": (lambda: ops.warp_labels([1, 2], FLOW), "list"),
    "warp_labels: a background between labels": (lambda: ops.warp_labels(LABELS, FLOW, background=0.5), "whole"),
    "identity: a negative size": (lambda: ops.identity((3, -1)), r"\(3, -1\)"),
    "resize: an infinite factor": (lambda: ops.resize(IMAGE, factor=float("inf")), "inf"),
    "warp: a sparse image": (lambda: ops.warp(IMAGE.to_sparse(), FLOW), "dense"),
    "warp_labels: a background beyond the type": (
        lambda: ops.warp_labels(LABELS.to(torch.uint8), FLOW, background=-1),
        "uint8",
    ),
    "warp_labels: unknown mode": (lambda: ops.warp_labels(LABELS, FLOW, "cubic"), "cubic"),
    "warp_labels: flow without a channel per axis": (lambda: ops.warp_labels(LABELS, FLOW[:, :1]), r"\(2, 1, 4, 5\)"),
    "identity: no axes": (lambda: ops.identity(()), r"\(\)"),
    "compose: outer field": (lambda: ops.compose(IMAGE, FLOW), r"\(2, 3, 4, 5\)"),
    "compose: inner field": (lambda: ops.compose(FLOW, IMAGE), r"\(2, 3, 4, 5\)"),
    "integrate: channels": (lambda: ops.integrate(IMAGE), r"\(2, 3, 4, 5\)"),
    "integrate: negative steps": (lambda: ops.integrate(FLOW, -1), "-1"),
    "invert: channels": (lambda: ops.invert(IMAGE), r"\(2, 3, 4, 5\)"),
    "jacobian: channels": (lambda: ops.jacobian(IMAGE), r"\(2, 3, 4, 5\)"),
    "jacobian_determinant: channels": (lambda: ops.jacobian_determinant(IMAGE), r"\(2, 3, 4, 5\)"),
    "resize: neither shape nor factor": (lambda: ops.resize(IMAGE), "shape"),
    "resize: both shape and factor": (lambda: ops.resize(IMAGE, (8, 10), 2), "factor"),
    "resize: number of sizes": (lambda: ops.resize(IMAGE, (8,)), r"\(8,\)"),
    "resize: no size": (lambda: ops.resize(IMAGE, (8, 0)), "0"),
    "resize: negative factor": (lambda: ops.resize(IMAGE, factor=-2), "-2"),
    "resize: unknown anchor": (lambda: ops.resize(IMAGE, (8, 10), anchor="corners"), "corners"),
    "resize_flow: channels": (lambda: ops.resize_flow(IMAGE, (8, 10)), r"\(2, 3, 4, 5\)"),
    "resize: no voxels": (lambda: ops.resize(IMAGE[..., :0], (8, 10)), "no voxels"),
    "resize: order too high": (lambda: ops.resize(IMAGE, (8, 10), order=8), "8"),
    "restrict: number of sizes": (lambda: ops.restrict(IMAGE, (2,)), r"\(2,\)"),
    "restrict: no size": (lambda: ops.restrict(IMAGE, (0, 2)), "0"),
    "restrict: unknown anchor": (lambda: ops.restrict(IMAGE, (2, 2), "corners"), "corners"),
    "restrict: unknown bound": (lambda: ops.restrict(IMAGE, (2, 2), bound="nowhere"), "nowhere"),
    "ffd: channels": (lambda: ops.ffd(IMAGE, (4, 5), 4), r"\(2, 3, 4, 5\)"),
    "ffd: number of sizes": (lambda: ops.ffd(FLOW, (4,), 4), r"\(4,\)"),
    "ffd: number of spacings": (lambda: ops.ffd(FLOW, (4, 5), (4,)), r"\(4,\)"),
    "ffd: spacing by a tensor": (lambda: ops.ffd(FLOW, (4, 5), torch.tensor(4.0)), "tensor"),  # type: ignore[arg-type]
    "ffd: no spacing": (lambda: ops.ffd(FLOW, (4, 5), 0), "spacing"),
    "ffd: a spacing that is no number": (lambda: ops.ffd(FLOW, (4, 5), (1, NAN)), "nan"),
    "ffd: next to no spacing": (lambda: ops.ffd(FLOW, (4, 5), 5e-324), "5e-324"),
    "ffd: an infinite spacing": (lambda: ops.ffd(FLOW, (4, 5), INF), "inf"),
    "ffd: too few points": (lambda: ops.ffd(FLOW, (4, 9), (4, 4)), r"\(4, 6\)"),
    "box_sum: even window": (lambda: ops.box_sum(IMAGE, 4), "4"),
    "box_sum: negative window": (lambda: ops.box_sum(IMAGE, -3), "-3"),
    "box_sum: number of windows": (lambda: ops.box_sum(IMAGE, (3, 3, 3)), r"\(3, 3, 3\)"),
    "box_sum: no window": (lambda: ops.box_sum(IMAGE, None), "None"),  # type: ignore[arg-type]
    "ffd: spacing left out": (lambda: ops.ffd(FLOW, (4, 5), None), "spacing .*None"),
    "ffd: spacing by name": (lambda: ops.ffd(FLOW, (4, 5), "44"), "spacing .*'44'"),
    "ffd: spacing left out on one axis": (lambda: ops.ffd(FLOW, (4, 5), (4, None)), r"spacing .*\(4, None\)"),
    "resize: factor by name": (lambda: ops.resize(IMAGE, factor="44"), "factor .*'44'"),
    "resize: factor left out on one axis": (lambda: ops.resize(IMAGE, factor=(2, None)), r"factor .*\(2, None\)"),
    "resize: factors in a tensor": (lambda: ops.resize(IMAGE, factor=torch.ones(2)), "factor"),
    "resize_flow: a complex factor": (lambda: ops.resize_flow(FLOW, factor=2j), "factor .*2j"),
    "box_sum: window left out": (lambda: ops.box_sum(IMAGE, None), "window .*None"),
    "box_sum: fractional window": (lambda: ops.box_sum(IMAGE, 3.0), r"window .*3\.0"),
    "identity: sizes by name": (lambda: ops.identity("45"), "shape .*'45'"),
    "identity: a fractional size": (lambda: ops.identity((4, 5.5)), r"shape .*5\.5"),
    "identity: a size left out": (lambda: ops.identity((None, 5)), "shape .*None"),
    "pull: bounds in lists": (lambda: ops.pull(IMAGE, FLOW, 1, [["dct2"], ["dct2"]]), "bound .*dct2"),
    "integrate: fractional steps": (lambda: ops.integrate(FLOW, 1.5), r"steps .*1\.5"),
    "integrate: steps left out": (lambda: ops.integrate(FLOW, None), "steps .*None"),
    "integrate: no step, unknown bound": (lambda: ops.integrate(FLOW, 0, 1, "nowhere"), "bound .*nowhere"),
    "invert: fractional iterations": (lambda: ops.invert(FLOW, 1.5), r"iterations .*1\.5"),
    "invert: negative iterations": (lambda: ops.invert(FLOW, -1), "iterations .*-1"),
    "invert: tolerance left out": (lambda: ops.invert(FLOW, tolerance=None), "tolerance .*None"),
    "invert: a tolerance that is no number": (lambda: ops.invert(FLOW, tolerance=NAN), "tolerance .*nan"),
    "warp_labels: background left out": (lambda: ops.warp_labels(LABELS, FLOW, background=None), "background .*None"),
    "warp_labels: sparse labels": (lambda: ops.warp_labels(LABELS.to_sparse(), FLOW), "labels .*dense"),
    "warp_labels: modes in a list": (lambda: ops.warp_labels(LABELS, FLOW, ["linear"]), "mode .*linear"),
    "grid_sample: modes in a list": (
        lambda: ops.grid_sample(IMAGE, FLOW.movedim(1, -1), ["bilinear"]),
        "mode .*bilinear",
    ),
    "box_sum: image of 2 axes": (lambda: ops.box_sum(IMAGE[0, 0], 3), r"\(4, 5\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_mistake_gets_one_line_that_names_it(name: str) -> None:
    call, named = REFUSED[name]
    with pytest.raises(ValueError, match=named) as caught:
        call()
    assert "\n" not in str(caught.value)


SAMPLERS: dict[str, Callable[[Tensor, Tensor, Any, Any, Any], Tensor]] = {
    "pull": ops.pull,
    "grad": ops.grad,
    "hess": ops.hess,
}


@pytest.mark.parametrize("size", [(0, 2), (2, 0)], ids=["no batch", "no channels"])
@pytest.mark.parametrize("name", SAMPLERS)
def test_empty_images_give_empty_results_and_empty_gradients(name: str, size: tuple[int, int]) -> None:
    coeff = torch.randn(*size, 4, 5, requires_grad=True)
    coords = torch.rand(size[0], 2, 3, 2, requires_grad=True)
    out = SAMPLERS[name](coeff, coords, 3, "dct2", True)
    assert out.shape[:2] == size and out.shape[-2:] == (3, 2)
    by_coeff, by_coords = torch.autograd.grad(out.sum(), (coeff, coords))
    assert by_coeff.shape == coeff.shape and torch.equal(by_coords, torch.zeros_like(coords))


@pytest.mark.parametrize("name", SAMPLERS)
def test_no_coordinates_give_no_samples_and_zero_gradients(name: str) -> None:
    coeff, coords = torch.randn(2, 1, 4, 5, requires_grad=True), torch.rand(2, 2, 0, 7, requires_grad=True)
    out = SAMPLERS[name](coeff, coords, 2, "dft", False)
    assert out.numel() == 0 and out.shape[-2:] == (0, 7)
    by_coeff, by_coords = torch.autograd.grad(out.sum(), (coeff, coords))
    assert torch.equal(by_coeff, torch.zeros_like(coeff)) and by_coords.shape == coords.shape


def test_pushing_nothing_gives_zeros() -> None:
    assert torch.equal(ops.push(torch.zeros(1, 2, 0, 3), torch.zeros(1, 2, 0, 3), (4, 5)), torch.zeros(1, 2, 4, 5))
    assert torch.equal(ops.count(torch.zeros(1, 1, 0), (4,)), torch.zeros(1, 1, 4))
    assert ops.push(torch.zeros(0, 2, 3), torch.zeros(0, 1, 3), (4,)).shape == (0, 2, 4)


def test_an_image_without_voxels_is_refused_where_something_would_be_sampled() -> None:
    with pytest.raises(ValueError, match="coeff has no voxels"):
        ops.pull(torch.zeros(1, 1, 0, 3), torch.zeros(1, 2, 4, 4))
    with pytest.raises(ValueError, match="the target has no voxels"):
        ops.push(torch.zeros(1, 1, 4, 4), torch.zeros(1, 2, 4, 4), (0, 3))


def test_other_operators_pass_empty_batches_through() -> None:
    flow = torch.zeros(0, 2, 4, 5)
    assert ops.warp(torch.zeros(0, 3, 4, 5), flow, 3).shape == (0, 3, 4, 5)
    assert ops.integrate(flow).shape == ops.invert(flow).shape == ops.compose(flow, flow).shape == (0, 2, 4, 5)
    assert ops.jacobian_determinant(flow).shape == (0, 1, 4, 5)
    assert ops.resize_flow(flow, (8, 3)).shape == ops.restrict(flow, (8, 3)).shape == (0, 2, 8, 3)
    assert ops.prefilter(flow).shape == ops.box_sum(flow, 3).shape == (0, 2, 4, 5)


INVALID = (NAN, INF, -INF, 2.0**30, -(2.0**30), 1e18, -1e30)


def invalid_coords(dtype: torch.dtype) -> Tensor:
    """(1, 2, 3, 7): on the first row the first axis is invalid, on the second row the other; the third is valid."""
    coords = off_knots(np.random.default_rng(0), (1, 2, 3, len(INVALID)), 0, 3).to(dtype)
    coords[0, 0, 0] = coords[0, 1, 1] = torch.tensor(INVALID, dtype=dtype)
    return coords


@pytest.mark.parametrize("order", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("bound", reference.BOUNDS)
def test_non_finite_and_huge_coordinates_give_nan_or_zero(bound: str, order: int) -> None:
    for dtype, extrapolate in ((torch.float32, True), (torch.float64, "edge")):
        tolerance = 1e-5 if dtype == torch.float32 else 1e-12
        options: tuple[Any, ...] = (order, bound, extrapolate)
        coeff, coords = torch.randn(1, 2, 5, 4, dtype=dtype), invalid_coords(dtype)
        for degree, op in enumerate((ops.pull, ops.grad, ops.hess)[: 3 if order else 1]):
            scale = reference.sample(coeff, coords, *options, degree=degree, absolute=True)
            want = reference.sample(coeff, coords, *options, degree=degree)
            assert np.isnan(want).any() and (want[..., 0, 1:] == 0).all()
            assert reference.error(op(coeff, coords, *options), want, scale) <= tolerance
        value = torch.full((1, 2, 3, len(INVALID)), NAN, dtype=dtype)
        value[:, :, 2] = 1
        want = reference.push(value, coords, (5, 4), *options)
        scale = reference.scatter(value, coords, (5, 4), *options, absolute=True)
        assert want.any() and np.isfinite(want).all()
        assert reference.error(ops.push(value, coords, (5, 4), *options), want, scale) <= tolerance
        assert reference.error(ops.count(coords, (5, 4), *options), want[:, :1], scale[:, :1]) <= tolerance


@pytest.mark.parametrize("bound", reference.BOUNDS)
@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_invalid_coordinates_have_no_gradient_even_under_a_nan_cotangent(bound: str, order: int) -> None:
    coeff = torch.randn(1, 2, 5, 4, requires_grad=True)
    coords = invalid_coords(torch.float32).requires_grad_()
    value = torch.full((1, 2, 3, len(INVALID)), NAN)
    value[:, :, 2] = 1
    by_coeff, by_coords = torch.autograd.grad(ops.pull(coeff, coords, order, bound), (coeff, coords), value)
    assert by_coeff.isfinite().all() and (by_coords[:, :, :2] == 0).all()
    assert by_coords.isfinite().all() and by_coords.abs().sum() > 0
    value.requires_grad_()
    pushed = ops.push(value, coords, (5, 4), order, bound)
    by_value, by_coords = torch.autograd.grad(pushed, (value, coords), torch.ones(1, 2, 5, 4))
    assert (by_value[:, :, :2] == 0).all() and (by_coords[:, :, :2] == 0).all()
    value = value.detach()
    value = value[:, :, None].expand(1, 2, 2, 3, -1)
    by_coeff, by_coords = torch.autograd.grad(ops.grad(coeff, coords, order, bound), (coeff, coords), value)
    assert by_coeff.isfinite().all() and (by_coords[:, :, :2] == 0).all()


@pytest.mark.parametrize("order", [1, 3])
def test_at_invalid_coordinates_forward_and_second_derivatives_are_zero_too(order: int) -> None:
    coeff = torch.randn(1, 2, 5, 4)
    coords = invalid_coords(torch.float32)
    moved = (torch.randn_like(coeff), torch.randn_like(coords))
    for function in (
        lambda c, x: ops.pull(c, x, order),
        lambda c, x: ops.grad(c, x, order),
        lambda c, x: ops.warp(c, x, order),
    ):
        _, tangent = torch.func.jvp(function, (coeff, coords), moved)
        assert (tangent[..., :2, :] == 0).all() and tangent[..., 2, :].abs().sum() > 0
    value = torch.ones(1, 2, 3, len(INVALID), requires_grad=True)
    coords.requires_grad_()
    (by_coords,) = torch.autograd.grad(ops.pull(coeff, coords, order), coords, value, create_graph=True)
    (by_value,) = torch.autograd.grad(by_coords, value, torch.ones_like(by_coords))
    assert (by_value[:, :, :2] == 0).all() and by_value.isfinite().all()


def test_warp_treats_non_finite_flows_alike() -> None:
    image = torch.randn(1, 1, 4, 7, requires_grad=True)
    flow = torch.zeros(1, 2, 4, 7)
    flow[0, 1, 1] = torch.tensor(INVALID)
    flow.requires_grad_()
    out = ops.warp(image, flow)
    assert out[0, 0, 1, 0].isnan() and (out[0, 0, 1, 1:] == 0).all()
    assert torch.equal(out[0, 0, [0, 2, 3]], image[0, 0, [0, 2, 3]])
    by_image, by_flow = torch.autograd.grad(
        out, (image, flow), torch.full_like(out, NAN).masked_fill(out.isfinite(), 1)
    )
    assert by_image.isfinite().all() and (by_flow[:, :, 1] == 0).all()


@pytest.mark.parametrize("entry", [NAN, INF])
def test_a_matrix_that_is_not_finite_leaves_finite_gradients(entry: float) -> None:
    image, flow = torch.randn(1, 1, 4, 5, requires_grad=True), torch.rand(1, 2, 4, 5, requires_grad=True)
    matrix = torch.tensor([[[entry, 0, 0], [0.5, 1, 0]]], requires_grad=True)
    out = ops.warp(image, flow, matrix=matrix)
    by_image, by_flow, by_matrix = torch.autograd.grad(out, (image, flow, matrix), torch.ones_like(out))
    assert not by_image.any() and not by_flow.any() and not by_matrix.any()


@pytest.mark.parametrize("bound", reference.BOUNDS)
def test_coordinates_just_below_the_limit_stay_in_the_buffer(bound: str) -> None:
    coeff = torch.randn(1, 1, 5, dtype=torch.float64)
    x = torch.tensor([[[2.0**30 - 1, 1 - 2.0**30, 2.0**29 + 0.25, -(2.0**29) - 0.25]]], dtype=torch.float64)
    for order in range(8):
        want = reference.pull(coeff, x, order, bound)
        scale = reference.sample(coeff, x, order, bound, absolute=True)
        assert reference.error(ops.pull(coeff, x, order, bound), want, scale) <= 1e-12


def test_nan_voxels_reach_the_samples_that_use_them_only() -> None:
    image = torch.ones(1, 1, 9, dtype=torch.float64)
    image[..., 4] = NAN
    got = ops.pull(image, torch.tensor([[[1.5, 3.5, 4.5, 6.5]]], dtype=torch.float64))
    assert got.isnan().flatten().tolist() == [False, True, True, False]


def test_inputs_are_left_as_they_were() -> None:
    image, flow = torch.randn(1, 2, 6, 5), torch.randn(1, 2, 6, 5)
    before = image.clone(), flow.clone()
    for order in (1, 3):
        ops.warp(image, flow, order)
        ops.push(image, flow, (6, 5), order)
        ops.prefilter(image, order)
    ops.integrate(flow)
    ops.box_sum(image, 3)
    assert torch.equal(image, before[0]) and torch.equal(flow, before[1])
