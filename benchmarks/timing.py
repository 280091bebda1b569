"""Medians of calls that take turns at each number of threads, so that a busy moment hits all alike."""

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

Call = Callable[[], object]

PLAIN_LOOP = "plain loop"
_NUMBERS = torch.linspace(1, 9, 2**19)


def seconds(calls: Mapping[tuple[str, int], Call], repeats: int) -> dict[tuple[str, int], float]:
    """Median seconds of each ``(name, threads)`` call, and of :func:`plain_loop` as ``(PLAIN_LOOP, threads)``."""
    turns = dict(calls)
    for _, threads in calls:
        turns[PLAIN_LOOP, threads] = plain_loop
    times = defaultdict(list)
    for repeat in range(repeats + 1):
        for (name, threads), call in turns.items():
            torch.set_num_threads(threads)
            start = time.perf_counter()
            call()
            if repeat:  # the first round warms up
                times[name, threads].append(time.perf_counter() - start)
    return {key: statistics.median(own) for key, own in times.items()}


def plain_loop() -> None:
    """An OpenMP loop of torch's own that computes and hardly reads: how far two threads carry on this machine."""
    torch.lgamma(_NUMBERS)


def backward(output: Tensor, inputs: Sequence[Tensor]) -> Call:
    """The backward pass alone, to be called again and again."""
    cotangent = torch.ones_like(output)
    return lambda: torch.autograd.grad(output, inputs, cotangent, retain_graph=True)
