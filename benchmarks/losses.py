"""The losses beside those of others, forward and backward together: times in one run, in turns, medians.

Usage: ``make bench-losses``, or ``python benchmarks/losses.py [--quick] [--only WORDS] [--json FILE]``

float32, one pair of 160 x 192 x 224, two threads, the gradient in the moved image, the field or the soft maps. The
peers are MONAI and neurite, where voxelmorph has its losses. Figures as in ``benchmarks/ops.py``: times faster; for
memory, the scalar fields that a call makes besides its gradient.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import peers
import torch
from comparisons import Comparison, Peer
from memory import RESET
from ops import table
from rich.console import Console
from rows import Row, compare, memory
from timing import Call
from torch import Tensor

from regnet import losses

SIZE, QUICK = (160, 192, 224), (14, 13, 12)
WINDOW, LABELS = 9, 36
MEMORY = f"lncc, window {WINDOW}, memory beyond the gradient"
LNCC_GOAL, GOAL = {2: (3.0, 5.0)}, {2: (2.0, 2.0)}


def comparisons(size: Sequence[int]) -> Iterator[Comparison]:
    """All of them, made one after the other, so that their tensors do not pile up."""
    yield lncc(size)
    yield bending(size)
    yield soft_dice(size)
    yield warped_dice(size)


def lncc(size: Sequence[int]) -> Comparison:
    """Two images of noise: what is in them does not change the cost."""
    x, y = torch.rand(1, 1, *size).requires_grad_(), torch.rand(1, 1, *size)
    theirs = {"monai": peers.monai_lncc, "neurite": peers.neurite_lncc}
    return Comparison(
        f"lncc, window {WINDOW}",
        size,
        both_ways(lambda: losses.lncc(x, y, WINDOW), x),
        [Peer(name, partial(prepared, make, x, y, WINDOW), LNCC_GOAL, (2,)) for name, make in theirs.items()],
        repeats=3,
    )


def bending(size: Sequence[int]) -> Comparison:
    """A field of noise."""
    flow = torch.randn(1, 3, *size).requires_grad_()
    return Comparison(
        "bending_energy",
        size,
        both_ways(lambda: losses.bending_energy(flow), flow),
        [Peer("monai", partial(prepared, peers.monai_bending, flow), GOAL, (2,))],
        repeats=3,
    )


def soft_dice(size: Sequence[int]) -> Comparison:
    """Soft maps that are there."""
    soft, hard = torch.rand(1, LABELS, *size).requires_grad_(), (torch.rand(1, LABELS, *size) > 0.9).float()
    theirs = {"monai": peers.monai_dice, "neurite": peers.neurite_dice}
    return Comparison(
        f"soft_dice, {LABELS} labels",
        size,
        both_ways(lambda: losses.soft_dice(soft, hard), soft),
        [Peer(name, partial(prepared, make, soft, hard), GOAL, (2,)) for name, make in theirs.items()],
        repeats=3,
    )


def warped_dice(size: Sequence[int]) -> Comparison:
    """Blocks of labels, 1 to ``LABELS``, that are warped first; the gradient is in the field."""
    block = torch.stack(torch.meshgrid(*(torch.arange(n) // (n // 4 + 1) for n in size), indexing="ij"))
    number = block[0] + 4 * block[1] + 16 * block[2]
    fixed = (number % LABELS + 1).to(torch.int16)[None, None]
    moving, flow = fixed.roll(2, dims=2), torch.randn(1, 3, *size).requires_grad_()
    return Comparison(
        f"warped_dice, {LABELS} labels",
        size,
        both_ways(lambda: losses.warped_dice(moving, fixed, flow), flow),
        [Peer("grid_sample + neurite", partial(prepared, peers.warped_dice, moving, fixed, flow, LABELS), GOAL, (2,))],
        repeats=1,
    )


def prepared(make: Callable[..., Callable[[], Tensor]], *arguments: Any) -> Call:
    """A peer's loss, forward and backward in the tensor that asks for it."""
    (leaf,) = (tensor for tensor in arguments if isinstance(tensor, Tensor) and tensor.requires_grad)
    return both_ways(make(*arguments), leaf)


def both_ways(loss: Callable[[], Tensor], leaf: Tensor) -> Call:
    """Forward and backward."""
    return lambda: torch.autograd.grad(loss(), leaf)


def measured(size: Sequence[int], only: str, quick: bool) -> Iterator[Row]:
    """Each operation when its turn comes."""
    for comparison in comparisons(size):
        if only in comparison.operation:
            yield from compare(comparison, comparison.peers, 1 if quick else comparison.repeats)
    if only in MEMORY and RESET.exists():
        for name in filter(find_spec, ("monai", "neurite")):
            yield memory(MEMORY, "lncc", size, name, (None, 6))


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tiny volume, one repeat: whether it runs, no figures")
    parser.add_argument("--only", default="", metavar="WORDS", help="operations whose name contains this")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows here")
    args = parser.parse_args()
    torch.manual_seed(0)
    rows = list(measured(QUICK if args.quick else SIZE, args.only, args.quick))
    if args.quick:
        rows = [replace(row, must=None, aim=None) for row in rows]
    Console(width=240).print(table(rows, "regnet.losses"))
    if args.json:
        args.json.write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
