"""What stays alive, and how much is made on the way."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from regnet import ops

linux = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")


def resident() -> int:
    """Bytes this process holds."""
    return int(Path("/proc/self/statm").read_text("utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE")


@linux
def test_c15_a_forward_pass_that_is_never_differentiated_leaves_nothing_behind() -> None:
    x = torch.randn(1, 1, 64, 64, 64, requires_grad=True)
    coords = (ops.identity((64, 64, 64)) + 0.3).requires_grad_()
    references = []
    for k in range(200):
        y = ops.pull(x, coords)
        references.append(weakref.ref(y))
        del y
        if k == 20:
            gc.collect()
            before = resident()
    gc.collect()
    assert all(reference() is None for reference in references)
    assert resident() - before < 50e6


RUNS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "warp": lambda image, flow: ops.warp(image, flow),
    "cubic warp": lambda image, flow: ops.warp(image, flow, 3),
    "pull": lambda image, flow: ops.pull(image, flow),
    "push": lambda image, flow: ops.push(image, flow, tuple(image.shape[2:])),
    "grad": lambda image, flow: ops.grad(image, flow),
    "integrate": lambda image, flow: ops.integrate(flow, 3),
    "box_sum": lambda image, flow: ops.box_sum(image, 3),
    "jacobian_determinant": lambda image, flow: ops.jacobian_determinant(flow),
}


@pytest.mark.parametrize("name", RUNS)
def test_no_graph_refers_to_itself(name: str) -> None:
    image, flow = torch.randn(1, 1, 6, 5, 4, requires_grad=True), torch.randn(1, 3, 6, 5, 4, requires_grad=True)
    gc.disable()
    try:
        out = RUNS[name](image, flow)
        reference = weakref.ref(out)
        del out
        assert reference() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("name", RUNS)
def test_a_second_backward_through_a_kept_graph_gives_the_same_gradients(name: str) -> None:
    image, flow = torch.randn(1, 1, 6, 5, 4, requires_grad=True), torch.randn(1, 3, 6, 5, 4, requires_grad=True)
    out = RUNS[name](image, flow)
    first = torch.autograd.grad(out.sum(), (image, flow), retain_graph=True, allow_unused=True)
    second = torch.autograd.grad(out.sum(), (image, flow), allow_unused=True)
    for a, b in zip(first, second, strict=True):
        assert (a is None and b is None) or torch.equal(a, b)


def test_warp_makes_no_grid_and_no_copy() -> None:
    image, flow = torch.randn(1, 1, 32, 33, 34), torch.randn(1, 3, 32, 33, 34)
    matrix = torch.eye(3, 4)[None]
    room = image.numel() * image.element_size()
    assert peak_of(lambda: ops.warp(image, flow)) <= room + 4096
    assert peak_of(lambda: ops.warp(image, flow, matrix=matrix)) <= room + 4096
    assert peak_of(lambda: ops.warp(image.movedim(-1, 2), flow.movedim(-1, 2))) <= room + 4096


def test_warp_and_its_backward_make_one_field_beside_their_results() -> None:
    image = torch.randn(1, 1, 32, 33, 34, requires_grad=True)
    flow = torch.randn(1, 3, 32, 33, 34, requires_grad=True)
    cotangent = torch.randn(1, 1, 32, 33, 34)
    room = image.numel() * image.element_size()
    results = 1 + 1 + 3
    peak = peak_of(lambda: torch.autograd.grad(ops.warp(image, flow), (image, flow), cotangent))
    assert peak <= (results + 1) * room + 4096


def kept_by_the_graph(run: Callable[[], Tensor]) -> int:
    """Bytes that the graph of ``run`` holds for its backward, each storage once."""
    storages: dict[int, int] = {}

    def pack(x: Tensor) -> Tensor:
        storages[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        run()
    return sum(storages.values())


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_integration_keeps_one_field_a_step_at_any_order(order: int) -> None:
    velocity = torch.randn(1, 3, 12, 13, 14, requires_grad=True)
    field = velocity.numel() * velocity.element_size()
    assert kept_by_the_graph(lambda: ops.integrate(velocity, 5, order)) == 5 * field
    peak = peak_of(lambda: torch.autograd.grad(ops.integrate(velocity, 5, order), velocity, velocity.detach()))
    # beside a field a step: the result, the gradient in the coordinates, that in the coefficients, and filtered
    assert peak <= (5 + 4) * field + 4096


@pytest.mark.parametrize("order", [1, 3])
def test_warp_and_compose_keep_nothing_but_their_inputs(order: int) -> None:
    image, flow = torch.randn(1, 1, 12, 13, 14, requires_grad=True), torch.randn(1, 3, 12, 13, 14, requires_grad=True)
    inner = flow.detach().clone().requires_grad_()
    inputs = 4 * (image.numel() + flow.numel())
    assert kept_by_the_graph(lambda: ops.warp(image, flow, order)) == inputs
    assert kept_by_the_graph(lambda: ops.compose(flow, inner, order)) == 4 * (flow.numel() + inner.numel())


def peak_of(run: Callable[[], object]) -> int:
    """The most bytes torch's allocator held at once during ``run``, beyond those it held before."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profiler:
        kept = run()
    del kept
    held = peak = 0
    for event in sorted(profiler.profiler.kineto_results.events(), key=lambda event: event.start_ns()):
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
    return peak
