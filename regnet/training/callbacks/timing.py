"""Where the time of a step goes, and how much memory it takes."""

import os
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import nn

_STATM = Path("/proc/self/statm")


class Timing(Callback):
    """Log, at each step, the seconds of its parts and the memory.

    ``time/data``: waiting for the batch; ``time/network``; ``time/deformation``: the rest of the model, heads and
    warps; ``time/loss``; ``time/backward``: all that remains, the optimiser included; ``time/step``: their sum.
    ``memory/GiB``: on a GPU the most that tensors held since training began, else what the process holds.

    Of a compiled model, all but data and loss is in ``time/backward``. A GPU is waited for at each boundary, in one of
    ``every_n_steps`` steps.

    Args:
        every_n_steps: how often a step is timed.
    """

    def __init__(self, every_n_steps: int = 10) -> None:
        self.every_n_steps = every_n_steps
        self._spent: dict[str, float] = defaultdict(float)
        self._device = torch.device("cpu")
        self._timed = False
        self._ended = 0.0
        self._hooks: list[Any] = []

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Watch the networks, the model and the loss."""
        self._device = pl_module.device
        model: Any = pl_module.model
        loss: Any = pl_module.loss
        if model._compiled_call_impl is not None:  # to look into it would cut what is compiled in pieces
            self._watch("loss", loss)
            self._ended = time.perf_counter()
            return
        networks = [part for name, part in model.named_modules() if name.split(".")[-1] == "network"]
        for name, parts in {"network": networks, "model": [model], "loss": [loss]}.items():
            for part in parts:
                self._watch(name, part)
        self._ended = time.perf_counter()

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """The batch is there."""
        self._spent.clear()
        self._timed = (batch_idx + 1) % self.every_n_steps == 0
        self._spent["data"] = time.perf_counter() - self._ended

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Log the parts."""
        if self._timed:
            now = self._now()
            step = now - self._ended
            spent = {name: self._spent[name] for name in ("data", "network", "loss")}
            spent["deformation"] = self._spent["model"] - spent["network"]
            spent["backward"] = step - sum(spent.values())
            values = {f"time/{name}": value for name, value in {**spent, "step": step}.items()}
            for logger in trainer.loggers:  # `self.log` would repeat them at the steps between
                logger.log_metrics({**values, "memory/GiB": self._memory() / 2**30}, step=trainer.global_step - 1)
        self._timed = False
        self._ended = time.perf_counter()

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """The validation between is no part of a step."""
        self._ended = time.perf_counter()

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Watch no more."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def _watch(self, name: str, part: nn.Module) -> None:
        began: list[float] = []

        def begin(*_: Any) -> None:
            if self._timed:
                began.append(self._now())

        def end(*_: Any) -> None:
            if self._timed and began:
                self._spent[name] += self._now() - began.pop()

        self._hooks += [part.register_forward_pre_hook(begin), part.register_forward_hook(end)]

    def _now(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return time.perf_counter()

    def _memory(self) -> float:
        if self._device.type == "cuda":
            return torch.cuda.max_memory_allocated(self._device)
        return resident()


def resident() -> int:
    """Bytes of memory that this process holds; 0 where the system does not say (only Linux does so, here)."""
    return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if _STATM.exists() else 0
