"""Signals: finish the batch, write a checkpoint, and only then end."""

import os
import signal
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Checkpoint

from regnet.training.callbacks.checkpoint import may_save

_REQUEUE = getattr(signal, "SIGUSR1", None)  # not on Windows
_SIGNALS = [number for number in (signal.SIGINT, signal.SIGTERM, _REQUEUE) if number is not None]
_TOLD = b"\nfinishing this batch, then a checkpoint; Ctrl-C again ends at once\n"


class Interrupted(SystemExit):
    """Training was ended from outside; ``code`` is 128 and the signal's number, as a shell has it."""


class Interruption(Checkpoint):
    """End after the batch in which Ctrl-C, SIGTERM or SIGUSR1 came, with a checkpoint that is whole.

    Lightning would save or stop in the middle of whatever the signal found, half a step of the optimiser included.
    Under SLURM, SIGUSR1 then calls what Lightning has for it: save, and have ``scontrol`` requeue the job. A second
    Ctrl-C ends at once. The last batch of an epoch is followed by its validation first. Several processes stop at the
    same batch.

    Args:
        dirpath: where ``recent.ckpt`` goes.
    """

    def __init__(self, dirpath: str | Path) -> None:
        self.path = Path(dirpath) / "recent.ckpt"
        self._asked = 0
        self._leave = 0
        self._lightnings: Any = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Take the signals over from Lightning, which gives them back to whom they belonged when it ends."""
        self._asked = self._leave = 0
        try:
            before = {number: signal.signal(number, self._note) for number in _SIGNALS}
        except ValueError:  # not the main thread: whoever runs it decides
            return
        self._lightnings = before.get(_REQUEUE)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Save where a signal came; the epoch's last batch waits for its validation."""
        if may_save(trainer, batch_idx):
            self._save_if_asked(trainer)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Save where a signal came late in an epoch that is not the last."""
        if not trainer.should_stop and trainer.current_epoch + 1 != trainer.max_epochs:
            self._save_if_asked(trainer)

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """End: the loggers have had the batch that was saved."""
        if self._leave:
            raise Interrupted(128 + self._leave)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            if self._asked:
                raise KeyboardInterrupt
            os.write(2, _TOLD)
        self._asked = number

    def _save_if_asked(self, trainer: Trainer) -> None:
        asked = self._agreed(trainer)
        if asked and asked == _REQUEUE and callable(self._lightnings):
            self._lightnings(asked, None)
            if trainer.is_global_zero:
                _keep_newest(Path(trainer.default_root_dir))
        elif asked:
            trainer.save_checkpoint(self.path)
        self._leave = asked

    def _agreed(self, trainer: Trainer) -> int:
        """The signal that any of the processes got."""
        if trainer.world_size == 1:
            return self._asked
        asked = torch.tensor(self._asked, device=trainer.strategy.root_device)
        torch.distributed.all_reduce(asked, torch.distributed.ReduceOp.MAX)
        return int(asked)


def _keep_newest(folder: Path) -> None:
    """Lightning numbers what it saves before a requeue, and leaves all of them."""
    for path in sorted(folder.glob("hpc_ckpt_*.ckpt"), key=lambda path: path.stat().st_mtime_ns)[:-1]:
        path.unlink()
