"""Warnings in words, for what a curve shows too late."""

import logging
import time
from statistics import median
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

_log = logging.getLogger(__name__)
_STILL = 0.1  # voxels
_FOLDING = 0.05  # of the foreground
_WAITING = 0.5  # of a step
_FEW = 20  # steps


class Advice(Callback):
    """Say once each: nothing is learned, folding explodes, the loader starves the network.

    Args:
        after_steps: from when on a mean displacement below 0.1 voxel in validation is a warning.
    """

    def __init__(self, after_steps: int = 500) -> None:
        self.after_steps = after_steps
        self._said: set[str] = set()
        self._lengths: list[float] = []
        self._shares: list[float] = []
        self._ended = self._began = 0.0

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """What was before is no waiting."""
        self._ended = time.perf_counter()

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """The batch is there."""
        self._began = time.perf_counter()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Judge the loader by the median of the last steps."""
        now = time.perf_counter()
        if batch_idx:  # the first of an epoch waits for what the others find ready
            self._shares = [*self._shares[1 - _FEW :], (self._began - self._ended) / (now - self._ended)]
        self._ended = now
        if len(self._shares) == _FEW and median(self._shares) > _WAITING:
            self._say(
                trainer, "starves",
                f"the loader starves the network: {median(self._shares):.0%} of a step waits for its batch: "
                "more data.num_workers, or images that are prepared already",
            )  # fmt: skip

    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin to measure."""
        self._lengths.clear()

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """How far voxels go on average."""
        self._lengths.append(float(outputs["displacement"].float().norm(dim=1).mean()))

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Judge."""
        if trainer.sanity_checking or not self._lengths:
            return
        length = sum(self._lengths) / len(self._lengths)
        folding = float(trainer.callback_metrics.get("val/folding", 0.0))
        if trainer.global_step >= self.after_steps and length < _STILL:
            self._say(
                trainer, "still",
                f"nothing is learned: after {trainer.global_step} steps voxels move by {length:.3f} on average: "
                "a larger optimizer.lr, a smaller weight of the smoothness, or images that differ",
            )  # fmt: skip
        if folding > _FOLDING:
            self._say(
                trainer, "folds",
                f"folding explodes: the map folds in {folding:.1%} of the foreground: a larger weight of the "
                "smoothness, a velocity or spline head, or a smaller optimizer.lr",
            )  # fmt: skip

    def _say(self, trainer: Trainer, what: str, words: str) -> None:
        if trainer.is_global_zero and what not in self._said:
            self._said.add(what)
            _log.warning(words)
