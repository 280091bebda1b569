"""What a step of the training costs: told before the first one, and again once some have been measured."""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import torch
from lightning.pytorch import Callback, Trainer
from torch import Tensor

from regnet.training.estimate import estimate, state_tensors
from regnet.training.module import RegistrationModule

_RESET, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")  # Linux only


class Cost(Callback):
    """Tell memory and time of a step before training starts, and beside it what the first ones took.

    The estimate comes from a forward and backward pass on two crops of the first batch; it draws nothing and leaves
    nothing changed. Memory is what a step adds to what is held without it (weights, images, the program).

    Args:
        steps: how many are measured, the first one, which is slower, not counted.
    """

    def __init__(self, steps: int = 5) -> None:
        self.steps = steps
        self._seconds: list[float] = []
        self._told = ""
        self._before = 0.0
        self._start = 0.0

    def on_train_batch_start(self, trainer: Trainer, pl_module: Any, batch: Mapping[str, Any], batch_idx: int) -> None:
        """Estimate before the first step; start the clock before each."""
        if len(self._seconds) > self.steps:
            return
        if not self._seconds:
            self._before = _held(pl_module.device)
            self._told = _estimate(trainer, pl_module, batch)
            pl_module.print(f"a step will take {self._told}" if self._told else "what a step takes cannot be estimated")
            _forget_peak(pl_module.device)
        self._start = time.perf_counter()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Mapping[str, Any], batch_idx: int
    ) -> None:
        """Stop the clock; tell what was measured."""
        if len(self._seconds) > self.steps:
            return
        if pl_module.device.type == "cuda":
            torch.cuda.synchronize(pl_module.device)
        self._seconds.append(time.perf_counter() - self._start)
        if len(self._seconds) > self.steps:
            peak = _peak(pl_module.device)
            memory = "" if peak is None else f"{_readable(peak - self._before)} and "
            beside = f" (estimated: {self._told})" if self._told else ""
            pl_module.print(f"a step takes {memory}{median(self._seconds[1:]):.2g} s{beside}")


def _estimate(trainer: Trainer, module: RegistrationModule, batch: Mapping[str, Any]) -> str:
    """Memory and time of a step, in words; nothing where the crops could not be computed with."""
    if module.model._compiled_call_impl is not None:  # each size of a crop would be compiled
        return ""
    parameters = list(module.parameters())

    def loss(part: Mapping[str, Any]) -> Tensor:
        with trainer.strategy.precision_plugin.forward_context():
            return module.judge(part, module.current_epoch)[1]

    try:
        with _unchanged(module):
            cost = estimate(loss, batch, parameters)
    except (RuntimeError, ValueError, IndexError):  # too small for this network, too large for this device, ...
        return ""
    weights = sum(p.numel() * p.element_size() for p in parameters)
    return f"{_readable(cost.bytes + weights * state_tensors(module.optimizer))} and {cost.seconds:.2g} s"


@contextmanager
def _unchanged(module: torch.nn.Module) -> Iterator[None]:
    """Buffers, such as running means, and torch's random numbers are afterwards as they were."""
    buffers = [(buffer, buffer.clone()) for buffer in module.buffers()]
    with torch.random.fork_rng():
        try:
            yield
        finally:
            for buffer, before in buffers:
                buffer.copy_(before)


def _readable(count: float) -> str:
    return f"{count / 2**30:.2f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


def _forget_peak(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    elif _RESET.exists():
        _RESET.write_text("5")


def _peak(device: torch.device) -> float | None:
    """Most bytes held since ``_forget_peak``; None where that is not known."""
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else _status("VmHWM")


def _held(device: torch.device) -> float:
    return torch.cuda.memory_allocated(device) if device.type == "cuda" else _status("VmRSS") or 0.0


def _status(name: str) -> float | None:
    """Bytes, from what Linux tells of this process."""
    told = _STATUS.read_text() if _RESET.exists() else ""
    found = re.search(rf"^{name}:\s*(\d+) kB", told, re.MULTILINE)
    return None if found is None else 1024.0 * int(found.group(1))
