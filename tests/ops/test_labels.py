"""Warped label maps: against one-hots in float64, and every integer type to its last number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.func import vmap

from regnet import ops
from tests import reference
from tests.ops.cases import LAYOUTS, laid_out, off_knots
from tests.ops.test_memory import peak_of

SHAPES = [((9,), (12,)), ((5, 6), (4, 7)), ((4, 5, 3), (3, 4, 6))]
TYPES = (
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.uint16,
    torch.int16,
    torch.uint32,
    torch.int32,
    torch.uint64,
    torch.int64,
)
every_shape = pytest.mark.parametrize(("shape", "out"), SHAPES, ids=str)
every_mode = pytest.mark.parametrize("mode", ["linear", "nearest"])
every_type = pytest.mark.parametrize("dtype", TYPES, ids=str)


def drawn(shape: tuple[int, ...], batch: int = 2, highest: int = 5, seed: int = 0) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randint(0, highest, (batch, 1, *shape), generator=random, dtype=torch.int32)


def field(out: tuple[int, ...], batch: int = 2, reach: float = 2.0, seed: int = 0) -> Tensor:
    return off_knots(np.random.default_rng(seed), (batch, len(out), *out), -reach, reach)


def affine(ndim: int, batch: int = 2) -> Tensor:
    random = torch.Generator().manual_seed(ndim)
    return torch.eye(ndim, ndim + 1) + 0.1 * torch.randn(batch, ndim, ndim + 1, generator=random, dtype=torch.float64)


def same(got: Tensor, want: Any) -> None:
    assert np.array_equal(got.numpy(), want)


@every_shape
@every_mode
@pytest.mark.parametrize("highest", [2, 4, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_labels_are_the_arg_max_of_linearly_warped_indicators_or_the_nearest(
    shape: tuple[int, ...], out: tuple[int, ...], mode: str, highest: int, seed: int
) -> None:
    labels, flow = drawn(shape, 2, highest, seed), field(out, 2, 3.0, seed)
    for matrix in (None, affine(len(shape))):
        got = ops.warp_labels(labels, flow, mode, matrix, background=7)
        same(got, reference.warp_labels(labels, flow, mode, matrix, background=7))


@every_shape
@every_mode
@pytest.mark.parametrize("layout", LAYOUTS)
def test_strides_of_labels_and_flow_do_not_matter(
    shape: tuple[int, ...], out: tuple[int, ...], mode: str, layout: str
) -> None:
    room = torch.full([2 * n + 1 for n in (2, 1, *shape)], -1, dtype=torch.int32)
    labels = drawn(shape)
    if layout == "strided":
        labels = room[tuple(slice(1, 1 + 2 * n, 2) for n in labels.shape)].copy_(labels)
    else:
        labels = laid_out(labels, layout)
    flow = laid_out(field(out), layout)
    same(ops.warp_labels(labels, flow, mode), reference.warp_labels(labels, flow, mode))


@every_shape
@every_mode
@pytest.mark.parametrize("batches", [(1, 2, 2), (2, 1, 1), (2, 2, 1), (1, 1, 2)], ids=str)
def test_a_batch_of_one_is_broadcast(
    shape: tuple[int, ...], out: tuple[int, ...], mode: str, batches: tuple[int, int, int]
) -> None:
    labels, flow, matrix = drawn(shape, batches[0]), field(out, batches[1]), affine(len(shape), batches[2])
    got = ops.warp_labels(labels, flow, mode, matrix)
    want = ops.warp_labels(*(x.expand(2, *x.shape[1:]).contiguous() for x in (labels, flow)), mode, matrix)
    assert torch.equal(got, want)


@every_type
@every_mode
def test_the_extremes_of_every_type_come_through(dtype: torch.dtype, mode: str) -> None:
    held = torch.iinfo(torch.uint8 if dtype == torch.bool else dtype)
    low, high = (0, 1) if dtype == torch.bool else (held.min, held.max)
    values = [low, high, max(high - 1, 0), min(low + 1, high), high, low]
    labels = torch.tensor(values, dtype=dtype).reshape(1, 1, 2, 3)
    out = ops.warp_labels(labels, torch.zeros(1, 2, 2, 3), mode)
    assert out.dtype == dtype and out.flatten().tolist() == values
    away = ops.warp_labels(labels, torch.full((1, 2, 2, 3), 9.0), mode, background=high)
    assert away.dtype == dtype and away.flatten().tolist() == [high] * 6


@every_mode
def test_large_label_numbers_stay_exact(mode: str) -> None:
    labels = torch.tensor([2**40 + 1, 2**40 + 3, -5, 0]).reshape(1, 1, 4)
    assert torch.equal(ops.warp_labels(labels, torch.zeros(1, 1, 4), mode), labels)
    shifted = ops.warp_labels(labels, torch.full((1, 1, 4), 0.75), mode)
    assert shifted.flatten().tolist() == [2**40 + 3, -5, 0, 0]
    ends = torch.tensor([2**63 - 1, 2**53 + 1, -(2**63), 2**63 - 2]).reshape(1, 1, 4)
    assert torch.equal(ops.warp_labels(ends, torch.zeros(1, 1, 4), mode, background=-7), ends)
    away = ops.warp_labels(ends, torch.full((1, 1, 4), 2.0), mode, background=2**62 + 1)
    assert away.flatten().tolist() == [-(2**63), 2**63 - 2, 2**62 + 1, 2**62 + 1]


@every_mode
def test_labels_outside_the_view_are_background(mode: str) -> None:
    labels = torch.full((1, 1, 2, 3), 4, dtype=torch.int16)
    flow = torch.zeros(1, 2, 2, 3)
    flow[0, 0, 0] = torch.tensor([-0.5, -0.6, float("inf")])
    flow[0, 1, 1] = torch.tensor([float("nan"), 1.5, 1e30])
    assert ops.warp_labels(labels, flow, mode, background=9)[0, 0].tolist() == [[4, 9, 9], [9, 4, 9]]


@every_type
def test_of_two_labels_that_weigh_the_same_the_smaller_wins(dtype: torch.dtype) -> None:
    held = torch.iinfo(torch.uint8 if dtype == torch.bool else dtype)
    low, high = (0, 1) if dtype == torch.bool else (held.min, held.max)
    for pair in ([low, high], [high, low]):
        labels = torch.tensor(pair, dtype=dtype).reshape(1, 1, 2)
        halfway = ops.warp_labels(labels, torch.tensor([0.5, -0.5]).reshape(1, 1, 2))
        assert halfway.flatten().tolist() == [low, low]


def test_small_shares_of_one_label_outweigh_a_larger_share_of_another() -> None:
    # at (0.4, 0.4) the corners weigh 0.36, 0.24, 0.24, 0.16
    labels = torch.tensor([[9, 2], [2, 5]]).reshape(1, 1, 2, 2)
    assert ops.warp_labels(labels, torch.full((1, 2, 1, 1), 0.4)).item() == 2
    assert ops.warp_labels(labels, torch.full((1, 2, 1, 1), 0.4), "nearest").item() == 9


@every_mode
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), 1e30, -(2.0**31)])
@pytest.mark.parametrize("with_matrix", [False, True])
def test_a_flow_that_points_nowhere_gives_background(mode: str, bad: float, with_matrix: bool) -> None:
    matrix = torch.eye(3, 4)[None] if with_matrix else None
    for axis in range(3):
        flow = torch.zeros(1, 3, 2, 2, 2)
        flow[0, axis, 0, 1, 0] = bad
        out = ops.warp_labels(torch.ones(1, 1, 2, 2, 2, dtype=torch.uint8), flow, mode, matrix, background=3)
        assert out.flatten().tolist() == [1, 1, 3, 1, 1, 1, 1, 1]


@every_mode
@pytest.mark.parametrize("out", [(0, 4, 5), (3, 0, 5), (3, 4, 0)], ids=str)
def test_an_empty_field_gives_an_empty_map(mode: str, out: tuple[int, ...]) -> None:
    assert ops.warp_labels(drawn((4, 5, 3), 1), torch.zeros(2, 3, *out), mode).shape == (2, 1, *out)
    assert ops.warp_labels(drawn((4, 0, 3), 1), torch.zeros(2, 3, *out), mode).shape == (2, 1, *out)


@every_mode
def test_any_number_of_threads_gives_the_same_labels(mode: str) -> None:
    shape = (45, 44, 47)
    labels, flow = drawn(shape, 1), 3 * torch.randn(1, 3, *shape)
    results = []
    for threads in (1, 2, 3, 8):
        torch.set_num_threads(threads)
        results.append(ops.warp_labels(labels, flow, mode))
    assert all(torch.equal(result, results[0]) for result in results[1:])


@every_mode
def test_neither_flow_nor_matrix_gets_a_gradient(mode: str) -> None:
    flow, matrix = field((4, 7)).requires_grad_(), affine(2).requires_grad_()
    assert not ops.warp_labels(drawn((5, 6)), flow, mode, matrix).requires_grad


@every_mode
def test_a_mapped_axis_joins_the_batch(mode: str) -> None:
    labels, flow = torch.stack([drawn((5, 6), seed=k) for k in range(3)]), field((4, 7))
    got = vmap(lambda x: ops.warp_labels(x, flow, mode))(labels)
    assert torch.equal(got, torch.stack([ops.warp_labels(x, flow, mode) for x in labels]))
    flows = torch.stack([field((4, 7), seed=k) for k in range(3)], 1)
    got = vmap(lambda x, u: ops.warp_labels(x, u, mode), in_dims=(None, 1))(labels[0], flows)
    assert torch.equal(got, torch.stack([ops.warp_labels(labels[0], u, mode) for u in flows.unbind(1)]))


@every_mode
def test_it_compiles_whole_and_passes_torchs_own_check(mode: str) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(ops.warp_labels, fullgraph=True, dynamic=True, backend="aot_eager")
    for shape, out in (((5, 6), (4, 7)), ((8, 3), (9, 5))):
        labels, flow = drawn(shape), field(out).requires_grad_()
        assert torch.equal(compiled(labels, flow, mode), ops.warp_labels(labels, flow, mode))
    arguments = (drawn((5, 6)), field((4, 7)), affine(2), int(mode == "linear"), 4)
    torch.library.opcheck(torch.ops.regnet.vote, arguments)


def test_no_indicator_is_made() -> None:
    labels, flow = drawn((32, 33, 34), 1, 1000).to(torch.int16), torch.randn(1, 3, 32, 33, 34)
    assert peak_of(lambda: ops.warp_labels(labels, flow)) <= labels.numel() * labels.element_size() + 4096


def test_a_background_that_bool_does_not_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="bool"):
        ops.warp_labels(torch.ones(1, 1, 4, dtype=torch.bool), torch.zeros(1, 1, 4), background=2)
