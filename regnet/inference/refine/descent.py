"""Gradient descent that never ends worse than it began, and stops when nothing more is won or time is up."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Progress = Callable[[int, int, float], None]
"""Called after every step with the steps done, the steps in all and the loss."""

# A plateau: so many evaluations in turn won less than this share of all that was won since the beginning. Adam's steps
# are of one length however near the best point is; so there it goes back to that point and on in shorter steps, this
# many times.
_PATIENCE = 5
_WORTHWHILE = 0.005
_SHORTER = 0.3
_TIMES = 2


@dataclass(frozen=True)
class Clock:
    """A time, of ``time.monotonic``, after which no further step begins."""

    end: float = math.inf

    @classmethod
    def of(cls, seconds: float | None) -> "Clock":
        """So many seconds from now.

        Raises:
            ValueError: they are not positive.
        """
        if seconds is not None and not seconds > 0:
            raise ValueError(f"seconds must be above 0, got {seconds}")
        return cls() if seconds is None else cls(time.monotonic() + seconds)

    def share(self, part: float) -> "Clock":
        """The first ``part`` of what is left."""
        now = time.monotonic()
        return Clock(now + part * (self.end - now)) if self.end < math.inf else self

    def is_over(self) -> bool:
        return time.monotonic() >= self.end


def descend(
    values: Sequence[Tensor],
    loss: Callable[[], Tensor],
    steps: int,
    learning_rate: float,
    clock: Clock | None = None,
    report: Callable[[int, float], None] | None = None,
) -> float:
    """Minimise by Adam, and leave the values at the best point that was looked at.

    Args:
        values: leaves, changed in place.
        loss: evaluates the objective at them.
        steps: at most; 0 only evaluates.
        learning_rate: Adam's.
        clock: when to stop.
        report: called after every step with the number of steps and the loss before it.

    Returns:
        The loss at the point that is left: the least of all evaluated, the start among them.

    Raises:
        ValueError: the loss is not finite at the start.
    """
    clock = clock or Clock()
    optimizer = torch.optim.Adam(values, lr=learning_rate)
    bests: list[float] = []
    since, times = 0, 0
    kept = [value.detach().clone() for value in values]
    for done in range(steps + 1):
        total = loss()
        number = total.item()
        if not bests and not math.isfinite(number):
            raise ValueError(f"the loss to start from is {number}: the images or the starting map are not finite")
        if not bests or number < bests[-1]:
            for copy, value in zip(kept, values, strict=True):
                copy.copy_(value.detach())
        bests.append(min(bests[-1], number) if bests else number)  # what is NaN is never the less
        if done == steps or not math.isfinite(number) or clock.is_over():
            break
        if _on_plateau(bests, since):
            if times == _TIMES:
                break
            since, times = len(bests), times + 1
            optimizer = torch.optim.Adam(values, lr=learning_rate * _SHORTER**times)
            with torch.no_grad():
                for copy, value in zip(kept, values, strict=True):
                    value.copy_(copy)
            del total
            total = loss()
        optimizer.zero_grad(set_to_none=True)
        total.backward()
        del total
        optimizer.step()
        if report is not None:
            report(done + 1, number)
    with torch.no_grad():
        for copy, value in zip(kept, values, strict=True):
            value.copy_(copy)
    return bests[-1]


def _on_plateau(bests: Sequence[float], since: int) -> bool:
    if len(bests) - since <= _PATIENCE:
        return False
    return bests[-1 - _PATIENCE] - bests[-1] <= _WORTHWHILE * (bests[0] - bests[-1])
