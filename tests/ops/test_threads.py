"""Any number of threads, the same bits; and no more threads than torch allows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from regnet import ops
from regnet.ops import _core

THREADS = (1, 2, 3, 8)
SHAPE = (45, 44, 47)  # some 93,000 voxels: enough for eight threads to start


def fields(shape: tuple[int, ...], kind: str) -> Tensor:
    """Displacements that are smooth, as rough as noise, or all into one corner."""
    random = torch.Generator().manual_seed(0)
    ndim = len(shape)
    if kind == "smooth":
        coarse = 4 * torch.randn(1, ndim, *[4] * ndim, generator=random)
        return ops.resize(coarse, shape, order=3)
    if kind == "rough":
        return 30 * torch.randn(1, ndim, *shape, generator=random)
    return 0.3 * torch.randn(1, ndim, *shape, generator=random) - ops.identity(shape)


def runs(shape: tuple[int, ...], kind: str) -> dict[str, Callable[[], tuple[Tensor, ...]]]:
    random = torch.Generator().manual_seed(1)
    image = torch.randn(1, 2, *shape, generator=random)
    flow = fields(shape, kind)
    coords = flow + ops.identity(shape)
    matrix = torch.eye(len(shape), len(shape) + 1)[None] * 0.98

    pair = torch.cat([flow, flow.flip(-1)])

    def gradients(op: Callable[..., Tensor], *inputs: Tensor) -> tuple[Tensor, ...]:
        leaves = [x.clone().requires_grad_() for x in inputs]
        out = op(*leaves)
        cotangent = torch.randn(out.shape, generator=torch.Generator().manual_seed(2))
        return out.detach(), *torch.autograd.grad(out, leaves, cotangent)

    return {
        "pull": lambda: (ops.pull(image, coords, 1),),
        "cubic pull": lambda: (ops.pull(image, coords, 3, "dct1"),),
        "push": lambda: (ops.push(image, coords, shape, 1),),
        "cubic push": lambda: (ops.push(image, coords, shape, 3, "dft"),),
        "push onto fewer voxels": lambda: (ops.push(image, coords / 3, tuple(n // 3 for n in shape), 2),),
        "count": lambda: (ops.count(coords, shape, 1),),
        "grad": lambda: (ops.grad(image, coords, 2),),
        "backward of warp": lambda: gradients(lambda i, u, m: ops.warp(i, u, 1, matrix=m), image, flow, matrix),
        "backward of a cubic warp": lambda: gradients(lambda i, u: ops.warp(i, u, 3, "dct1"), image, flow),
        "backward of one image for two fields": lambda: gradients(ops.warp, image, pair),
        "backward of grad": lambda: gradients(lambda v, x: ops.grad(v, x, 2), image, coords),
        "backward of integrate": lambda: gradients(lambda v: ops.integrate(v / 10, 2), flow),
        "prefilter": lambda: (ops.prefilter(image, 3), ops.prefilter(image, 5, "replicate")),
        "box_sum": lambda: (ops.box_sum(image, 5),),
        "jacobian_determinant": lambda: (ops.jacobian_determinant(flow),),
        "integrate": lambda: (ops.integrate(flow / 10, 2),),
        "resize": lambda: (ops.resize(image, tuple(n + 3 for n in shape), order=3),),
        "restrict": lambda: (ops.restrict(image, tuple(n // 2 + 1 for n in shape), order=2),),
        "warp_labels": lambda: (ops.warp_labels((4 * image[:, :1]).long(), flow),),
    }


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name in runs((2, 2), "rough") for kind in ("smooth", "rough")]
    + [(name, "corner") for name in ("push", "cubic push", "count", "backward of warp")],
)
def test_results_are_bit_identical_for_any_number_of_threads(name: str, kind: str) -> None:
    run = runs(SHAPE, kind)[name]
    results = []
    for threads in (*THREADS, 8):
        torch.set_num_threads(threads)
        results.append(run())
    for result in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(result, results[0], strict=True))


@pytest.mark.parametrize("shape", [(3,), (11, 4), (3, 7, 5), (9, 8, 13)], ids=str)
@pytest.mark.parametrize("kind", ["smooth", "rough", "corner"])
def test_a_thread_for_every_voxel_changes_no_bit(
    shape: tuple[int, ...], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slabs of one row, segments shared by many: where a race would show."""
    calls = runs(shape, kind)
    torch.set_num_threads(1)
    expected = {name: run() for name, run in calls.items()}
    monkeypatch.setattr(_core, "GRAIN", 1)
    for threads in (2, 3, 8):
        torch.set_num_threads(threads)
        for _ in range(5):
            for name, run in calls.items():
                assert all(torch.equal(a, b) for a, b in zip(run(), expected[name], strict=True)), (name, threads)


@pytest.mark.parametrize("shape", [(100_000,), (310, 300)], ids=str)
@pytest.mark.parametrize("name", ["cubic pull", "push", "cubic push", "backward of warp", "prefilter"])
def test_lines_and_slices_are_bit_identical_for_any_number_of_threads(name: str, shape: tuple[int, ...]) -> None:
    run = runs(shape, "rough")[name]
    results = []
    for threads in THREADS:
        torch.set_num_threads(threads)
        results.append(run())
    for result in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(result, results[0], strict=True))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("order", [1, 3])
def test_a_scatter_shared_by_threads_is_the_adjoint_and_loses_nothing(threads: int, order: int) -> None:
    torch.set_num_threads(threads)
    for kind in ("smooth", "rough"):
        coords = (fields(SHAPE, kind) + ops.identity(SHAPE)).double()
        image, value = torch.randn(1, 1, *SHAPE).double(), torch.randn(1, 1, *SHAPE).double()
        pulled, pushed = ops.pull(image, coords, order), ops.push(value, coords, SHAPE, order)
        assert ((pulled * value).sum() - (image * pushed).sum()).abs() <= 1e-13 * pulled.norm() * value.norm()
        assert ops.count(coords, SHAPE, order).sum().item() == pytest.approx(value.numel(), rel=1e-12)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts threads in /proc")
def test_the_team_follows_torch_at_call_time() -> None:
    program = """
import os, torch
from regnet import ops
def threads(n):
    torch.set_num_threads(n)
    ops.pull(image, coords, 1)
    return len(os.listdir("/proc/self/task"))
torch.set_num_threads(1)
image, coords = torch.randn(1, 1, 96, 96, 96), ops.identity((96, 96, 96)) + 0.3
before = len(os.listdir("/proc/self/task"))
print(threads(1) - before, threads(3) - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    # 4: torch 2.4 carries an OpenMP runtime under a name of its own, which has its team beside ours
    assert done.stdout.split() in (["0", "2"], ["0", "4"])


class Warps(Dataset[Tensor]):
    """Item k warps a volume in whichever process it is asked for, on ``threads`` threads (0: as torch has it)."""

    def __init__(self, threads: int = 0) -> None:
        self.threads = threads

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Tensor:
        if self.threads:
            torch.set_num_threads(self.threads)
        random = torch.Generator().manual_seed(index)
        image = torch.randn(1, 1, *SHAPE, generator=random)
        flow = torch.randn(1, 3, *SHAPE, generator=random)
        return ops.warp(image, flow, 3) + ops.push(image, flow + ops.identity(SHAPE), SHAPE)


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="forks")
def test_forked_workers_give_the_same_bits_after_the_parent_used_its_threads() -> None:
    torch.set_num_threads(2)
    here = [Warps()[k] for k in range(4)]
    there = list(DataLoader(Warps(), batch_size=None, num_workers=2, multiprocessing_context="fork", timeout=60))
    assert all(torch.equal(a, b) for a, b in zip(here, there, strict=True))
