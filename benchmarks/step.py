"""One step of training (forward, backward, optimiser) beside voxelmorph 0.3.4: seconds and peak memory.

Usage: ``python benchmarks/step.py [--sizes 96x128x96 160x192x224] [--threads 2] [--repeats 3] [--json FILE]``;
voxelmorph asks for sizes that are multiples of 32.

float32, one pair, a stationary velocity with 5 squarings, as many weights as voxelmorph's ``VxmPairwise`` by default
(within 1 %), one loss in plain torch for all: mean squared difference and squared differences of the velocity. Times
are medians of steps that take turns in one process; memory is the most that a process of its own held during its second
step, beyond what it held before its first. "half" ends the network and integrates at half the resolution, as the
configurations of regnet do; "full" does both at the full one, as voxelmorph does; "checkpointing" is "full" with
``network.checkpointing=true``. The figure is ours over voxelmorph's: it must be at most 0.75 (time) and 0.7 (memory).
"""

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from memory import RESET, status
from rich.console import Console
from rich.table import Table
from timing import seconds
from torch import Tensor, nn

from regnet.memory import keep_freed
from regnet.models import Registration, UNet, VelocityHead

PEER = "voxelmorph"
WIDTH, LEVELS, SQUARINGS = 16, 5, 5
SMOOTHNESS = 0.01
# Whatever is freed goes back to Linux at once; what glibc keeps for later would count as held.
GIVE_BACK = {"MALLOC_MMAP_THRESHOLD_": "1000000"}


@dataclass(frozen=True)
class Row:
    """One model at one size."""

    size: str
    model: str
    weights: int
    seconds: float
    seconds_over_peer: float
    megabytes: float | None
    megabytes_over_peer: float | None


def ours(full: bool, checkpointing: bool = False) -> Registration:
    """A U-Net with the widths of voxelmorph's and a velocity head."""
    coarsest = WIDTH if full else 2 * WIDTH  # one level less going up: its weights go to the coarsest level
    encoder = [*[WIDTH] * LEVELS, coarsest]
    network = UNet(3, 2, encoder, [WIDTH] * (LEVELS if full else LEVELS - 1), checkpointing=checkpointing)
    return Registration(network, VelocityHead(3, WIDTH, stride=network.stride, steps=SQUARINGS))


def peer() -> nn.Module:
    """voxelmorph's, as it comes."""
    from voxelmorph.nn.models import VxmPairwise

    return VxmPairwise(3, 1, 1, integration_steps=SQUARINGS)


MODELS: dict[str, Callable[[], nn.Module]] = {
    PEER: peer,
    "half": lambda: ours(full=False),
    "full": lambda: ours(full=True),
    "checkpointing": lambda: ours(full=True, checkpointing=True),
}


class Step:
    """Forward, backward and optimiser of one model and one pair."""

    def __init__(self, name: str, size: Sequence[int]) -> None:
        torch.manual_seed(0)
        self.name = name
        self.model = MODELS[name]()
        self.moving, self.fixed = torch.rand(2, 1, 1, *size)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4)

    def __call__(self) -> None:
        self.optimizer.zero_grad()
        self.loss(*self.answer()).backward()
        self.optimizer.step()

    def answer(self) -> tuple[Tensor, Tensor]:
        """Velocity and moved image."""
        if self.name != PEER:
            outputs = self.model(self.moving, self.fixed)
            return outputs["velocity"], outputs["moved"]
        words = {"return_warped_source": True, "return_field_type": "velocity"}
        velocity, moved = self.model(self.moving, self.fixed, **words)
        return velocity, moved

    def loss(self, velocity: Tensor, moved: Tensor) -> Tensor:
        """The same for all."""
        rough = sum(velocity.diff(dim=axis).square().mean() for axis in (2, 3, 4))
        return (moved - self.fixed).square().mean() + SMOOTHNESS * rough

    def weights(self) -> int:
        """How many there are."""
        return sum(parameter.numel() for parameter in self.model.parameters())


def peak(name: str, size: Sequence[int]) -> float:
    """Megabytes of a step, in this process."""
    Step(name, (32, 32, 32))()  # loads what is loaded at the first call
    step = Step(name, size)
    before = status("VmRSS")
    step()
    RESET.write_text("5")
    step()
    return (status("VmHWM") - before) / 2**20


def measure(size: str, threads: int, repeats: int) -> list[Row]:
    """All models at one size."""
    shape = [int(n) for n in size.split("x")]
    memory = {}
    if RESET.exists():
        for name in MODELS:
            words = [sys.executable, __file__, "--peak", name, "--sizes", size, "--threads", str(threads)]
            done = subprocess.run(words, check=True, capture_output=True, text=True, env={**os.environ, **GIVE_BACK})
            memory[name] = float(done.stdout)
    steps = {(name, threads): Step(name, shape) for name in MODELS}
    times = seconds(steps, repeats)
    rows = []
    for (name, _), step in steps.items():
        spent, held = times[name, threads], memory.get(name)
        ratio = held / memory[PEER] if held is not None else None
        rows.append(Row(size, name, step.weights(), spent, spent / times[PEER, threads], held, ratio))
    return rows


def table(rows: Sequence[Row]) -> Table:
    """All rows."""
    out = Table(*("size", "model", "weights", "s", "figure", "MB", "figure"), title="one step of training")
    forms = ("{}", "{}", "{}", "{:.2f}", "{:.2f}", "{:.0f}", "{:.2f}")
    for row in rows:
        cells = zip(forms, asdict(row).values(), strict=True)
        out.add_row(*("" if cell is None else form.format(cell) for form, cell in cells))
    return out


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=["96x128x96", "160x192x224"], metavar="AxBxC")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows here")
    parser.add_argument("--peak", choices=MODELS, help="only print the peak memory of this model, in MB")
    args = parser.parse_args()
    try:
        peer()
    except ImportError as error:
        parser.error(f"{error}: pip install voxelmorph==0.3.4")
    torch.set_num_threads(args.threads)
    if args.peak:
        print(peak(args.peak, [int(n) for n in args.sizes[0].split("x")]))
        return
    keep_freed()
    rows = [row for size in args.sizes for row in measure(size, args.threads, args.repeats)]
    weights = {row.weights for row in rows}
    assert math.isclose(min(weights), max(weights), rel_tol=0.01), weights
    Console(width=120).print(table(rows))
    if args.json is not None:
        args.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


if __name__ == "__main__":
    main()
