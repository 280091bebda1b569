"""Operators against ``torch.nn.functional.grid_sample``: ratios in one process, medians, threads stated.

Usage: ``make bench``, or ``python benchmarks/ops.py [--threads N ...] [--json FILE]``
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Tensor

from regnet import ops

SIZE = (128, 128, 128)
FIELD = (96, 112, 96)
PEERS = f"""One volume of {SIZE}, integrate {FIELD}; medians, both in turns. Beside pull, warp, push and prefilter
of any order stands grid_sample's trilinear forward, its normalised grid ready made; beside the gradients (image and
coordinates) its backward; beside integrate the same squarings with grid_sample."""


def smooth_flow(shape: Sequence[int]) -> Tensor:
    """A field of a few voxels, one sine a channel, each along another axis."""
    p = ops.identity(shape)
    return torch.cat([3 * torch.sin(0.1 * p[:, (d + 1) % 3, None]) + 0.3 for d in range(3)], 1)


def normalised(coords: Tensor) -> Tensor:
    """The same points as ``grid_sample`` wants them: (N, *out, D), last axis first, in [-1, 1]."""
    scaled = [2 * coords[:, d] / (n - 1) - 1 for d, n in reversed(list(enumerate(coords.shape[2:])))]
    return torch.stack(scaled, -1)


def grid_sample(image: Tensor, grid: Tensor) -> Tensor:
    """Torch's own pull, of order 1, on the grid of :func:`normalised`."""
    return F.grid_sample(image, grid, padding_mode="border", align_corners=True)


def grid_sample_integrate(velocity: Tensor, steps: int = 7) -> Tensor:
    """``ops.integrate`` as it is written with ``grid_sample``."""
    identity = ops.identity(velocity.shape[2:])
    flow = velocity / 2**steps
    for _ in range(steps):
        flow = flow + grid_sample(flow, normalised(identity + flow))
    return flow


def seconds(calls: Sequence[Callable[[], Any]], repeats: int = 7) -> list[float]:
    """Median time of each call; they take turns, so that a busy moment hits all alike."""
    times: list[list[float]] = [[] for _ in calls]
    for repeat in range(repeats + 1):
        for call, own in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            if repeat:  # the first round warms up
                own.append(time.perf_counter() - start)
    return [statistics.median(own) for own in times]


def backward(output: Tensor, inputs: Sequence[Tensor]) -> Callable[[], Any]:
    """The backward pass alone, to be called again and again."""
    cotangent = torch.ones_like(output)
    return lambda: torch.autograd.grad(output, inputs, cotangent, retain_graph=True)


def rows(threads: int) -> list[dict[str, Any]]:
    """Measure every operation with so many threads."""
    torch.set_num_threads(threads)
    generator = torch.Generator().manual_seed(0)
    image = torch.randn(1, 1, *SIZE, generator=generator)
    flow = smooth_flow(SIZE)
    coords = ops.identity(SIZE) + flow
    grid = normalised(coords)
    leaves = [t.clone().requires_grad_() for t in (image, coords, grid)]
    velocity = smooth_flow(FIELD)
    theirs, ours1, ours3, warped, pushed, filtered = seconds(
        [
            lambda: grid_sample(image, grid),
            lambda: ops.pull(image, coords, 1),
            lambda: ops.pull(image, coords, 3),
            lambda: ops.warp(image, flow, 1),
            lambda: ops.push(image, coords, SIZE, 1),
            lambda: ops.prefilter(image, 3),
        ]
    )
    their_gradients, our_gradients = seconds(
        [
            backward(grid_sample(leaves[0], leaves[2]), (leaves[0], leaves[2])),
            backward(ops.pull(leaves[0], leaves[1]), leaves[:2]),
        ]
    )
    their_integral, our_integral = seconds(
        [lambda: grid_sample_integrate(velocity), lambda: ops.integrate(velocity)], repeats=5
    )
    voxels = image.numel()

    def row(name: str, theirs: float, ours: float, wanted: float | None = None, size: int = voxels) -> dict[str, Any]:
        return {
            "operation": name,
            "threads": threads,
            "ns_per_voxel": 1e9 * ours / size,
            "peer_ns_per_voxel": 1e9 * theirs / size,
            "times_faster": theirs / ours,
            "wanted": wanted,
        }

    return [
        row("pull, order 1", theirs, ours1, 2.0 if threads == 1 else None),
        row("pull, order 3", theirs, ours3, 1.0 if threads == 1 else None),
        row("warp, order 1", theirs, warped),
        row("push, order 1", theirs, pushed),
        row("gradients, order 1", their_gradients, our_gradients),
        row("prefilter, order 3", theirs, filtered),
        row("integrate, 7 steps", their_integral, our_integral, 3.0, velocity[0, 0].numel()),
    ]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="thread counts, the same for both")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    args = parser.parse_args()
    table = Table(title=f"regnet.ops against grid_sample of torch {torch.__version__}, float32, CPU")
    for heading in ("operation", "thr", "ns/voxel", "torch", "faster", "wanted"):
        table.add_column(heading, justify="left" if heading == "operation" else "right", no_wrap=True)
    results = [row for threads in args.threads for row in rows(threads)]
    for r in results:
        times = (f"{r[name]:.1f}" for name in ("ns_per_voxel", "peer_ns_per_voxel"))
        wanted = "" if r["wanted"] is None else f"{r['wanted']:.0f}"
        table.add_row(r["operation"], str(r["threads"]), *times, f"{r['times_faster']:.2f}", wanted)
    Console().print(table)
    print(PEERS)
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
