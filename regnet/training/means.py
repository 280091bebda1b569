"""Means over the pairs of an epoch that survive a resume in its middle, and are the same in every process."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, distributed


class Means:
    """Running sums of named values.

    A name that only some batches have (the overlap of a pair with labels), or only some processes, counts where it
    is.
    """

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._counts: dict[str, int] = {}

    def add(self, values: Mapping[str, Tensor | float], count: int) -> None:
        """Add the means of a batch of ``count`` pairs; nothing waits for the device."""
        for name, value in values.items():
            value = torch.as_tensor(value, dtype=torch.float32).detach() * count
            self._sums[name] = self._sums[name] + value if name in self._sums else value
            self._counts[name] = self._counts.get(name, 0) + count

    def state(self) -> dict[str, Any]:
        """Plain numbers, for a checkpoint."""
        return {name: [float(self._sums[name]), count] for name, count in self._counts.items()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from such numbers."""
        self._sums = {name: torch.tensor(total) for name, (total, _) in state.items()}
        self._counts = {name: count for name, (_, count) in state.items()}

    def take(self) -> dict[str, float]:
        """The means over all processes, each of which must ask; then begin anew."""
        parts: list[Any] = [self.state()]
        if distributed.is_available() and distributed.is_initialized():
            parts = [None] * distributed.get_world_size()
            distributed.all_gather_object(parts, self.state())
        self.load({})
        return merged(parts)


def merged(parts: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """The means over several such states."""
    sums: dict[str, tuple[float, int]] = {}
    for part in parts:
        for name, (total, count) in part.items():
            before = sums.get(name, (0.0, 0))
            sums[name] = before[0] + total, before[1] + count
    return {name: total / count for name, (total, count) in sums.items()}
