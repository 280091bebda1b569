"""Checkpoints to go on from, in the middle of an epoch too, whose memory of the best moves along with their folder."""

from pathlib import Path
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint


def may_save(trainer: Trainer, batch_idx: int) -> bool:
    """Whether a checkpoint at the end of this batch holds all there is.

    Not between the batches of one step, whose gradients are in no checkpoint; and not after the last batch of an epoch,
    from where Lightning would go on without the validation that is due.
    """
    return not trainer.is_last_batch and (batch_idx + 1) % trainer.accumulate_grad_batches == 0


class Checkpoint(ModelCheckpoint):
    """Lightning's ``ModelCheckpoint``, which forgets the best score when its folder was moved since.

    Resumed in a moved folder, the best so far counts; resumed into a new folder, the best is chosen among the epochs
    that are run there. Arguments as for ``ModelCheckpoint``; with ``every_n_train_steps`` the last batch of an epoch
    is left out, since Lightning would go on from there without the validation that is due.
    """

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Save in the middle of an epoch, where it is time."""
        if may_save(trainer, batch_idx):
            super().on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up what the checkpoint that one goes on from remembers."""
        if state_dict["dirpath"] == self.dirpath:
            super().load_state_dict(state_dict)
        elif self._here(state_dict["best_model_path"]).is_file():
            paths = ("best_model_path", "kth_best_model_path", "last_model_path")
            moved = {name: str(self._here(state_dict[name])) for name in paths if state_dict[name]}
            best = {str(self._here(path)): score for path, score in state_dict["best_k_models"].items()}
            super().load_state_dict({**state_dict, **moved, "best_k_models": best, "dirpath": self.dirpath})

    def _here(self, path: str) -> Path:
        return Path(self.dirpath or ".") / Path(path).name
