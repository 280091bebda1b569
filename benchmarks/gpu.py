"""The operators on a GPU beside torch and voxelmorph: times in one run, in turns, medians; memory; share of bandwidth.

Usage: ``python benchmarks/gpu.py [--quick] [--device cuda] [--json FILE]``

float32, one volume, a smooth displacement of a few voxels. The figure is the peer's time (or memory) over ours;
"must" is what the figure should reach. "GB/s" counts every number read or written once, and "share" is that over the
speed at which the device copies a large tensor. ``--device cpu --quick`` shows that the script runs, no more.
"""

import argparse
import contextlib
import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from peers import normalised, voxelmorph_integrate
from rich import box
from rich.console import Console
from rich.table import Table
from torch import Tensor

from regnet import ops
from regnet.ops._core import backend

Call = Callable[[], object]


@dataclass
class Row:
    """One comparison."""

    operation: str
    ours: float  # ms, or MiB
    theirs: float | None
    unit: str
    must: float | None
    speed: float | None = None  # GB/s
    share: float | None = None

    @property
    def figure(self) -> float | None:
        """How many times the peer's is ours."""
        return None if self.theirs is None else self.theirs / self.ours

    def cells(self) -> list[str]:
        """As the table shows them."""
        numbers = (self.ours, self.theirs, self.figure, self.must, self.speed, self.share)
        ours, theirs, figure, must, speed, share = ("" if x is None else f"{x:.3g}" for x in numbers)
        reached = "" if self.figure is None or self.must is None else "yes" if self.figure >= self.must else "NO"
        return [self.operation, ours, theirs, self.unit, figure, must, reached, speed, share]


class Bench:
    """Measures on one device."""

    def __init__(self, device: torch.device, repeats: int) -> None:
        self.device, self.repeats = device, repeats
        large = torch.zeros(2**26 if device.type == "cuda" else 2**20, device=device)
        self.copying = 8e-9 * large.numel() / (1e-3 * self.milliseconds([large.clone])[0])

    def once(self, call: Call) -> float:
        """Milliseconds of one call, the device's where it has a clock."""
        if self.device.type == "cpu":
            start = time.perf_counter()
            call()
            return 1e3 * (time.perf_counter() - start)
        start_event, end_event = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start_event.record()
        call()
        end_event.record()
        end_event.synchronize()
        return start_event.elapsed_time(end_event)

    def milliseconds(self, calls: Sequence[Call]) -> list[float]:
        """The median of each, which take turns; two rounds warm up."""
        rounds = [[self.once(call) for call in calls] for _ in range(self.repeats + 2)][2:]
        return [statistics.median(times) for times in zip(*rounds, strict=True)]

    def row(self, operation: str, ours: Call, theirs: Call | None, must: float | None, numbers: int = 0) -> Row:
        """``numbers``: of float32, that the operation has to read and write."""
        times = self.milliseconds([ours] if theirs is None else [ours, theirs])
        row = Row(operation, times[0], None if theirs is None else times[1], "ms", must)
        if numbers:
            row.speed = 4e-9 * numbers / (1e-3 * row.ours)
            row.share = row.speed / self.copying
        return row

    def memory(self, operation: str, ours: Call, theirs: Call, must: float) -> Row:
        """MiB beyond what is there before."""
        peaks = []
        for call in (ours, theirs):
            torch.cuda.synchronize()
            before = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            call()
            peaks.append((torch.cuda.max_memory_allocated() - before) / 2**20)
        return Row(operation, peaks[0], peaks[1], "MiB", must)


def smooth(shape: Sequence[int], device: torch.device) -> Tensor:
    """A displacement of a few voxels, (1, 3, *shape)."""
    coarse = 8 * torch.rand(1, 3, 5, 5, 5, device=device) - 4
    return F.interpolate(coarse, size=list(shape), mode="trilinear", align_corners=True)


def backward(run: Callable[..., Tensor], *inputs: Tensor) -> Call:
    """Forward and backward, both gradients."""
    leaves = [x.detach().requires_grad_() for x in inputs]

    def call() -> object:
        out = run(*leaves)
        return torch.autograd.grad(out, leaves, torch.ones_like(out))

    return call


def rows(bench: Bench, shape: Sequence[int]) -> Iterator[Row]:
    """Everything, one after the other."""
    device = bench.device
    image, flow = torch.rand(1, 1, *shape, device=device), smooth(shape, device)
    coords = ops.identity(shape, device=device) + flow
    grid = normalised(coords)
    voxels = image.numel()

    def sampled(v: Tensor, g: Tensor) -> Tensor:
        return F.grid_sample(v, g, padding_mode="reflection", align_corners=True)

    def warped(v: Tensor, u: Tensor) -> Tensor:
        return sampled(v, normalised(ops.identity(shape, device=device) + u))

    yield bench.row("pull order 1", lambda: ops.pull(image, coords), lambda: sampled(image, grid), 1.5, 5 * voxels)
    yield bench.row("pull order 3", lambda: ops.pull(image, coords, 3), lambda: sampled(image, grid), 1 / 3, 5 * voxels)
    yield bench.row("warp order 1", lambda: ops.warp(image, flow), lambda: warped(image, flow), None, 5 * voxels)
    both = backward(ops.pull, image, coords), backward(sampled, image, grid)
    yield bench.row("pull order 1, both gradients", *both, 1.5)
    yield bench.row("push order 1", lambda: ops.push(image, coords, shape), None, None, 5 * voxels)
    yield bench.row("push order 3", lambda: ops.push(image, coords, shape, 3), None, None, 5 * voxels)
    yield bench.row("grad order 1", lambda: ops.grad(image, coords), None, None, 7 * voxels)
    yield bench.row("prefilter order 3", lambda: ops.prefilter(image, 3), None, None, 6 * voxels)
    smaller = [n // 2 for n in shape]
    yield bench.row("resize, half the voxels along each axis", lambda: ops.resize(image, smaller), None, None)
    theirs: Call | None = None
    with contextlib.suppress(ImportError):
        import voxelmorph  # noqa: F401

        theirs = backward(lambda v: voxelmorph_integrate(v, 7)(), flow)
    yield bench.row("integrate(7), forward and backward", backward(ops.integrate, flow), theirs, 3)
    if device.type == "cuda":
        both = backward(ops.warp, image, flow), backward(warped, image, flow)
        yield bench.memory("warp, forward and backward", *both, 3)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tiny volume, one repeat: whether it runs, no figures")
    parser.add_argument("--device", type=torch.device, default=torch.device("cuda"))
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows here")
    args = parser.parse_args()
    if backend(args.device.type) == "torch":
        parser.error("plain torch would compute: there is nothing to measure")
    torch.manual_seed(0)
    bench = Bench(args.device, 1 if args.quick else 20)
    name = torch.cuda.get_device_name(args.device) if args.device.type == "cuda" else "a CPU"
    table = Table(box=box.SIMPLE_HEAD, title=f"regnet.ops on {name}, float32, torch {torch.__version__}")
    for heading in ("operation", "ours", "theirs", "unit", "figure", "must", "so", "GB/s", "share"):
        table.add_column(heading)
    content: dict[str, Any] = {"device": name, "torch": torch.__version__, "rows": []}
    try:
        for row in rows(bench, (16, 18, 20) if args.quick else (160, 192, 224)):
            table.add_row(*row.cells())
            content["rows"].append(asdict(row) | {"figure": row.figure})
            if args.json:  # after each row: the next may fail
                args.json.write_text(json.dumps(content, indent=1), encoding="utf-8")
    finally:
        Console(width=120).print(table)


if __name__ == "__main__":
    main()
