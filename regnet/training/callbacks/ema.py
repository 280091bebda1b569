"""Averaged weights."""

from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import EMAWeightAveraging


class EMA(EMAWeightAveraging):
    """Lightning's exponential moving average of the weights, which is tested with too, not only validated and saved.

    Arguments as for ``EMAWeightAveraging``. A checkpoint holds the averaged weights where those of a model are sought,
    and beside them what training goes on with.
    """

    def on_test_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Test the averaged weights."""
        self.on_validation_epoch_start(trainer, pl_module)

    def on_test_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> Any:
        """Take the others back."""
        self.on_validation_epoch_end(trainer, pl_module)
