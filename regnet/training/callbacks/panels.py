"""Pictures of a validation pair for the loggers that take pictures."""

import gc
from collections.abc import Mapping
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import TensorBoardLogger

from regnet.report.panels import six_panels


class Panels(Callback):
    """Log fixed, moving, moved, their difference, det J and the warped grid of the first validation pair, each epoch.

    TensorBoard and Weights & Biases show them; a logger without pictures gets none.
    """

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Mapping[str, Any],
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Draw the first pair of the first batch."""
        if trainer.sanity_checking or not trainer.is_global_zero or batch_idx > 0 or dataloader_idx > 0:
            return
        loggers: list[Any] = [logger for logger in trainer.loggers if _takes_pictures(logger)]
        if not loggers:
            return
        first = [field[0] for field in (batch["fixed"], batch["moving"], outputs["moved"], outputs["displacement"])]
        picture = six_panels(first[0], first[1], first[2], first[3])
        for logger in loggers:
            if isinstance(logger, TensorBoardLogger):
                logger.experiment.add_image("val/panels", picture, trainer.global_step, dataformats="HWC")
            else:
                logger.log_image("val/panels", [picture], step=trainer.global_step)
        gc.collect()  # a figure is a cycle of objects: ten MB each would wait for Python to look for them


def _takes_pictures(logger: Any) -> bool:
    # `log_image` is what Lightning's WandbLogger has; asking for it keeps wandb out of the imports.
    return isinstance(logger, TensorBoardLogger) or hasattr(logger, "log_image")
