"""One line of the table, and how it is measured."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from comparisons import Comparison, Peer
from memory import fields_beyond
from timing import PLAIN_LOOP, Call, seconds

ENOUGH = 1.7  # times faster that a plain loop must be with two threads, and then ours too
OURS = "regnet"
MEMORY = "warp, forward and backward, memory beyond results"


@dataclass(frozen=True)
class Row:
    """A figure; None is what was not measured or not wanted."""

    operation: str
    size: str
    threads: int
    peer: str
    unit: str
    ours: float
    theirs: float | None
    figure: float | None  # what is judged: at least ``must``, or at most where ``at_most``
    must: float | None = None
    aim: float | None = None
    at_most: bool = False
    scales: float | None = None
    machine_scales: float | None = None

    def verdict(self) -> str:
        """Of the figure against what must be."""
        if self.must is None or self.figure is None:
            return ""
        if self.machine_busy():
            return "busy"
        return "met" if (self.figure <= self.must if self.at_most else self.figure >= self.must) else "missed"

    def machine_busy(self) -> bool:
        """Whether a row of two threads says nothing."""
        return self.machine_scales is not None and self.machine_scales < ENOUGH

    def scales_badly(self) -> bool:
        """Whether our two threads are no better than that on a machine where a plain loop's are."""
        return self.scales is not None and self.scales < ENOUGH and not self.machine_busy()

    def cells(self) -> list[str]:
        """As a person reads it."""
        relation = "≤ " if self.at_most else "≥ "
        goals = ("" if goal is None else f"{relation}{goal:g}" for goal in (self.must, self.aim))
        return [
            self.operation,
            self.size,
            str(self.threads),
            f"{self.ours:.1f}",
            "not installed" if self.theirs is None else f"{self.theirs:.1f}",
            self.unit,
            self.peer,
            "" if self.figure is None else f"{self.figure:.2f}",
            *goals,
            self.verdict(),
            "" if self.scales is None else f"{self.scales:.2f} of {self.machine_scales:.2f}",
        ]


def compare(comparison: Comparison, peers: Sequence[Peer], repeats: int) -> Iterator[Row]:
    """One operation beside its peers, all in turns."""
    calls: dict[tuple[str, int], Call] = {}
    for peer in peers:
        call = installed(peer)
        for threads in {1, *peer.threads}:  # ours with one thread too, to say how it scales
            calls[OURS, threads] = comparison.ours
        if call is not None:
            calls |= {(peer.name, threads): call for threads in peer.threads}
    took = seconds(calls, repeats)
    for peer in peers:
        for threads in peer.threads:
            yield row(comparison, peer, threads, took)


def installed(peer: Peer) -> Call | None:
    """The peer's call, or None without the peer."""
    try:
        return peer.make()
    except ImportError:
        return None


def row(comparison: Comparison, peer: Peer, threads: int, took: dict[tuple[str, int], float]) -> Row:
    """From seconds to the figure that is judged."""
    ours, theirs = took[OURS, threads], took.get((peer.name, threads))
    voxels = torch.Size(comparison.size).numel()
    unit, scale = ("µs/call", 1e6 / comparison.calls) if comparison.overhead else ("ns/voxel", 1e9 / voxels)
    must, aim = peer.goals.get(threads, (None, None))
    figure = None
    if theirs is not None:
        figure = ours / theirs if comparison.overhead else theirs / ours
    return Row(
        comparison.operation,
        size(comparison.size),
        threads,
        peer.name,
        unit,
        scale * ours,
        None if theirs is None else scale * theirs,
        figure,
        must,
        aim,
        at_most=comparison.overhead,
        scales=None if threads == 1 else took[OURS, 1] / ours,
        machine_scales=None if threads == 1 else took[PLAIN_LOOP, 1] / took[PLAIN_LOOP, threads],
    )


def memory(operation: str, task: str, shape: Sequence[int], peer: str, goal: tuple[float | None, float]) -> Row:
    """The peak memory of a call and its backward beside a peer's; ``goal``: fields, None for no more than the peer."""
    ours, theirs = (fields_beyond(task, who, shape, 2) for who in (OURS, peer))
    must, aim = goal
    return Row(
        operation,
        size(shape),
        2,
        peer,
        "fields",
        ours,
        theirs,
        ours,
        theirs if must is None else must,
        aim,
        at_most=True,
    )


def size(shape: Sequence[int]) -> str:
    """As one writes it."""
    return "×".join(map(str, shape))
