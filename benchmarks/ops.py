"""The operators beside those of others: times in one run, in turns, medians; the same number of threads for both.

Usage: ``make bench``, or ``python benchmarks/ops.py [--quick] [--only WORDS] [--peers NAME ...] [--json FILE]``

float32, one volume, bound dct2, a smooth displacement of a few voxels. The figure is the peer's time over ours (times
faster); for one call on a tiny volume, ours over the peer's; for memory, our fields. "scales" is our time with one
thread over ours with two, "of" the same of a plain OpenMP loop that took its turns among the calls: a row of two
threads is judged where that loop scales by 1.7 or more. scipy has one thread, and so has grid_sample for one volume,
whatever it is given. Freed memory stays with the process, as in the commands of regnet, so that nobody pays for fresh
pages. Wants that name no threads are judged with two, the one of scipy with one.
"""

import argparse
import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch
from comparisons import QUICK, Sizes, comparisons
from memory import RESET
from rich import box
from rich.console import Console
from rich.table import Table
from rows import ENOUGH, MEMORY, Row, compare, memory

from regnet.memory import keep_freed
from regnet.ops._core import backend

HEADINGS = ("operation", "size", "thr", "ours", "theirs", "unit", "peer", "figure", "must", "aim", "so", "scales")
NUMBERS = ("thr", "ours", "theirs", "figure", "must", "aim", "scales")


def measured(sizes: Sizes, only: str, names: Sequence[str], quick: bool) -> Iterator[Row]:
    """What ``only`` and ``names`` leave, each operation when its turn comes."""
    for comparison in comparisons(sizes):
        peers = [peer for peer in comparison.peers if peer.name.split()[0] in names]
        if only in comparison.operation and peers:
            yield from compare(comparison, peers, 1 if quick else comparison.repeats)
    if only in MEMORY and "torch" in names and RESET.exists():
        yield memory(MEMORY, "warp", sizes.volumes[-1], "torch", (1, 0))


def table(rows: Sequence[Row], what: str = "regnet.ops") -> Table:
    """All rows."""
    out = Table(box=box.SIMPLE_HEAD, title=f"{what} beside others, float32, CPU, torch {torch.__version__}")
    for heading in HEADINGS:
        out.add_column(heading, justify="right" if heading in NUMBERS else "left", no_wrap=True)
    for row in rows:
        out.add_row(*row.cells())
    return out


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ["torch", "torch-interpol", "scipy", "SimpleITK", "voxelmorph", "monai"]
    parser.add_argument("--quick", action="store_true", help="tiny volumes, one repeat: whether it runs, no figures")
    parser.add_argument("--only", default="", metavar="WORDS", help="operations whose name contains this")
    parser.add_argument("--peers", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows here")
    args = parser.parse_args()
    if backend("cpu") != "native":
        parser.error("plain torch computes here (REGNET_BACKEND, or nothing is compiled): there is nothing to compare")
    keep_freed()
    results = []
    with Console(stderr=True).status("") as status:
        for row in measured(QUICK if args.quick else Sizes(), args.only, args.peers, args.quick):
            results.append(replace(row, must=None, aim=None) if args.quick else row)
            status.update(f"done: {row.operation}")
    console = Console(width=240)
    console.print(table(results))
    if args.quick:
        console.print("Quick: this shows that it runs. At these sizes the cost of a call decides, and memory is noise.")
    else:
        console.print(
            "figure: times faster (call overhead: times slower, memory: fields). so: against must; busy: not judged."
        )
    loops = [row.machine_scales for row in results if row.machine_scales is not None]
    if loops:
        console.print(f"This machine scales ×{statistics.median(loops):.2f} (the plain loop, two threads, all rows).")
    slow = sorted({row.operation for row in results if row.scales_badly()})
    if slow:
        console.print(f"Ours scale less than ×{ENOUGH}, where the plain loop does not: {', '.join(slow)}")
    if args.json:
        args.json.write_text(json.dumps([asdict(row) for row in results], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
