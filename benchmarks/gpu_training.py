"""What people buy: steps of training a VoxelMorph-like network with a stationary velocity, batch 1, on a GPU.

Usage: ``python benchmarks/gpu_training.py [--quick] [--device cuda] [--json FILE]``

All train the same U-Net on the same two images, float32 or under autocast to bfloat16, by Adam. What follows the
network is ours or the peer's: 7 steps of integration at half the resolution, the warp, local cross-correlation over 9
voxels; the smoothness term is ours. "idle" is the part of the time in which the GPU runs no kernel, by torch's
profiler.
``--device cpu --quick`` shows that the script runs, no more.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from gpu import smooth
from peers import monai_integrate, monai_lncc, monai_warp, neurite_lncc, voxelmorph_integrate, voxelmorph_warp
from rich import box
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from regnet import losses, ops
from regnet.models import UNet
from regnet.models.heads.field import FieldLayer

Similarity = Callable[[Tensor, Tensor, Tensor], Tensor]  # of the moving image, moved by the velocity, and the fixed one


@dataclass
class Row:
    """One way to train."""

    by: str
    type: str
    mode: str
    images_per_second: float | None = None
    peak_gib: float | None = None
    idle: float | None = None
    note: str = ""

    def cells(self) -> list[str]:
        """As the table shows them."""
        numbers = (self.images_per_second, self.peak_gib, self.idle)
        return [self.by, self.type, self.mode, *("" if x is None else f"{x:.3g}" for x in numbers), self.note]


def ours(moving: Tensor, fixed: Tensor, velocity: Tensor) -> Tensor:
    """Similarity after regnet's operators."""
    flow = ops.resize_flow(ops.integrate(velocity, 7), fixed.shape[2:], bound="replicate")
    return losses.lncc(ops.warp(moving, flow), fixed)


def peer(integrate: Callable, warp: Callable, lncc: Callable) -> Similarity:
    """The same by a peer's."""

    def similarity(moving: Tensor, fixed: Tensor, velocity: Tensor) -> Tensor:
        half = integrate(velocity, 7)()
        flow = 2 * F.interpolate(half, size=fixed.shape[2:], mode="trilinear", align_corners=True)
        return lncc(warp(moving, flow)(), fixed, 9)()

    return similarity


WAYS: dict[str, Similarity] = {
    "regnet": ours,
    "voxelmorph": peer(voxelmorph_integrate, voxelmorph_warp, neurite_lncc),
    "monai": peer(monai_integrate, monai_warp, monai_lncc),
}


def trainer(similarity: Similarity, shape: Sequence[int], device: torch.device, half: bool) -> Callable[[], None]:
    """A step of training."""
    torch.manual_seed(0)
    network = nn.Sequential(UNet(3, 2, [16, 32, 32, 32], [32, 32]), FieldLayer(3, 32)).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-4)
    fixed = smooth(shape, device)[:, :1] / 8 + 0.5
    moving = ops.warp(fixed, smooth(shape, device))

    def step() -> None:
        with torch.autocast(device.type, torch.bfloat16, enabled=half):
            features = network[0](moving, fixed)
        velocity = network[1](features)
        optimizer.zero_grad()
        (similarity(moving, fixed, velocity) + losses.diffusion(velocity)).backward()
        optimizer.step()

    return step


def measured(step: Callable[[], object], row: Row, device: torch.device, repeats: int) -> None:
    """Fill in the numbers."""
    on_gpu = device.type == "cuda"
    for _ in range(3 if on_gpu else 1):
        step()
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    wait()
    start = time.perf_counter()
    for _ in range(repeats):
        step()
    wait()
    seconds = (time.perf_counter() - start) / repeats
    row.images_per_second = 1 / seconds
    if not on_gpu:
        return
    row.peak_gib = torch.cuda.max_memory_allocated() / 2**30
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step()
        wait()
    busy = 1e-6 * sum(event.self_device_time_total for event in profile.key_averages())
    row.idle = max(0.0, 1 - busy / seconds)


def rows(shape: Sequence[int], device: torch.device, repeats: int, compile_too: bool) -> Iterator[Row]:
    """Every way; one that fails says so and stops no other."""
    for half in (False, True):
        for by, similarity in WAYS.items():
            for mode in ("eager", "compiled")[: 1 + (compile_too and by == "regnet")]:
                row = Row(by, "bfloat16" if half else "float32", mode)
                try:
                    tried: Similarity = torch.compile(similarity) if mode == "compiled" else similarity
                    measured(trainer(tried, shape, device, half), row, device, repeats)
                except Exception as error:
                    row.note = f"{type(error).__name__}: {error}".splitlines()[0][:200]
                yield row


def main() -> int:
    """Run the benchmark; what was measured is on disk after each row; 1 where one of our own rows failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tiny volume, one repeat: whether it runs, no figures")
    parser.add_argument("--device", type=torch.device, default=torch.device("cuda"))
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows here")
    args = parser.parse_args()
    table = Table(box=box.SIMPLE_HEAD, title="a step of training, batch 1")
    for heading in ("by", "type", "mode", "images/s", "peak GiB", "idle", ""):
        table.add_column(heading)
    shape, done = (32, 32, 32) if args.quick else (160, 192, 224), []
    for row in rows(shape, args.device, 1 if args.quick else 10, not args.quick):
        table.add_row(*row.cells())
        done.append(asdict(row))
        if args.json:
            args.json.write_text(json.dumps({"training": done}, indent=1), encoding="utf-8")
    Console(width=120).print(table)
    return int(any(row["note"] for row in done if row["by"] == "regnet"))


if __name__ == "__main__":
    sys.exit(main())
