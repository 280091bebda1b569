"""What a step of the training costs: told before the first one, and again once some have been measured."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from regnet.training.estimate import Held, estimate, state_tensors
from regnet.training.module import RegistrationModule


class Cost(Callback):
    """Tell memory and time of a step before training starts, and beside it what the first ones took.

    The estimate comes from a forward and backward pass on two crops of the first batch; it draws nothing and leaves
    nothing changed. Memory is that of the tensors that a step holds at once, and of the optimiser, beyond weights and
    images; it is counted in the first step, and the time is the median of the others.

    Args:
        steps: how many are timed.
    """

    def __init__(self, steps: int = 5) -> None:
        self.steps = steps
        self._seconds: list[float] = []
        self._told = ""
        self._held: Held | None = None
        self._start = 0.0

    def on_train_batch_start(self, trainer: Trainer, pl_module: Any, batch: Mapping[str, Any], batch_idx: int) -> None:
        """Estimate before the first step; start the clock before each."""
        if pl_module.model._compiled_call_impl is not None:
            return  # what Dynamo first meets under a dispatch mode it never compiles
        if self._held is None:
            self._told = _estimate(trainer, pl_module, batch)
            pl_module.print(f"a step will take {self._told}" if self._told else "what a step takes cannot be estimated")
            self._held = Held().__enter__()
        self._start = time.perf_counter()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Mapping[str, Any], batch_idx: int
    ) -> None:
        """Stop the clock; tell what was measured."""
        if self._held is None or len(self._seconds) > self.steps:
            return
        if pl_module.device.type == "cuda":
            torch.cuda.synchronize(pl_module.device)
        self._seconds.append(time.perf_counter() - self._start)
        if len(self._seconds) == 1:
            self._held.__exit__(None, None, None)
        if len(self._seconds) > self.steps:
            beside = f" (estimated: {self._told})" if self._told else ""
            pl_module.print(f"a step takes {_readable(self._held.most, median(self._seconds[1:]))}{beside}")

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Count no longer when the first step fails."""
        if self._held is not None and not self._seconds:
            self._held.__exit__(None, None, None)


def _estimate(trainer: Trainer, module: RegistrationModule, batch: Mapping[str, Any]) -> str:
    """Memory and time of a step, in words; nothing where the crops could not be computed with."""
    parameters = list(module.parameters())

    def loss(part: Mapping[str, Any]) -> Tensor:
        with trainer.strategy.precision_plugin.forward_context():
            return module.judge(part, module.current_epoch)[1]

    try:
        with _unchanged(module):
            cost = estimate(loss, batch, parameters)
    except (RuntimeError, ValueError, IndexError):  # too small for this network, too large for this device, ...
        return ""
    weights = sum(p.numel() * p.element_size() for p in parameters if p.requires_grad)
    return _readable(cost.bytes + weights * state_tensors(module.optimizer), cost.seconds)


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


def _readable(count: float, seconds: float) -> str:
    memory = f"{count / 2**30:.2f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
    return f"{memory} and {seconds:.2g} s"
