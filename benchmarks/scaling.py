"""How each operator goes from one thread to two, judged only in turns in which a plain loop does so too.

Usage: ``make bench-scaling``, or ``python benchmarks/scaling.py [--quick] [--only WORDS] [--turns N]``

A shared machine lends its second core for moments. So each turn times a plain OpenMP loop with one thread and with two,
before and after our call with one and with two, and counts only where the loop's slowest two threads were 1.7 times
faster than its fastest one. The figure is the median of ours over the turns that count.
"""

import argparse
import statistics
import time

import torch
from comparisons import QUICK, Comparison, Sizes, comparisons
from rich.console import Console
from rows import ENOUGH, size
from timing import Call, plain_loop

from regnet.memory import keep_freed

KEPT = 9  # turns that count, per operation


def timed(call: Call, threads: int) -> float:
    """Seconds of one call."""
    torch.set_num_threads(threads)
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def scaling(comparison: Comparison, turns: int) -> tuple[list[float], int]:
    """Our time with one thread over ours with two, in each turn that counts; and how many turns it took."""
    kept: list[float] = []
    timed(comparison.ours, 2)
    for turn in range(turns):
        before = timed(plain_loop, 1), timed(plain_loop, 2)
        ours = timed(comparison.ours, 1) / timed(comparison.ours, 2)
        after = timed(plain_loop, 2), timed(plain_loop, 1)
        if min(before[0], after[1]) / max(before[1], after[0]) >= ENOUGH:
            kept.append(ours)
        if len(kept) == KEPT:
            return kept, turn + 1
    return kept, turns


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny volumes, two turns: whether it runs, no figures")
    parser.add_argument("--only", default="", metavar="WORDS", help="operations whose name contains this")
    parser.add_argument("--turns", type=int, default=60, help="at most so many for each operation")
    args = parser.parse_args()
    keep_freed()
    console = Console(width=120)
    for comparison in comparisons(QUICK if args.quick else Sizes()):
        if comparison.overhead or args.only not in comparison.operation:
            continue
        kept, turns = scaling(comparison, 2 if args.quick else args.turns)
        span = (
            f"×{statistics.median(kept):.2f} ({min(kept):.2f} to {max(kept):.2f})" if kept else "the machine was busy"
        )
        console.print(f"{comparison.operation:28} {size(comparison.size):12} {span}, {len(kept)} of {turns} turns")


if __name__ == "__main__":
    main()
