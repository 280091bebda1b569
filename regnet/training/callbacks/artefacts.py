"""What a run leaves besides its curves: an example for a viewer; and all of it, with the loggers that keep files."""

from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from regnet.io import write_image
from regnet.spatial import Grid

_EXAMPLE = ("fixed", "moving", "moved")


class Artefacts(Callback):
    """At the end of training, write the first validation pair as ``example/{fixed,moving,moved}.nii.gz``.

    Weights & Biases also keeps the configuration, the best checkpoint and the example, as an artefact of the run. The
    example has the spacing of the pair, mm, and lies along the axes of the world.

    Args:
        run_dir: folder of the run.
    """

    def __init__(self, run_dir: str | Path) -> None:
        self.folder = Path(run_dir)
        self._pair: dict[str, Tensor] = {}

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Keep the pair."""
        if batch_idx == 0:
            fields = {**batch, "moved": outputs["moved"]}
            self._pair = {name: fields[name][0].detach().cpu() for name in (*_EXAMPLE, "spacing")}

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Write, and hand over."""
        if not trainer.is_global_zero or getattr(trainer, "fast_dev_run", False):
            return
        if self._pair:
            self._write_example()
        for logger in trainer.loggers:
            run: Any = getattr(logger, "experiment", None)
            if hasattr(run, "log_artifact"):
                self._hand_over(run)

    def _write_example(self) -> None:
        shape = self._pair["fixed"].shape[1:]
        affine = torch.diag(torch.cat([self._pair["spacing"].double(), torch.ones(1, dtype=torch.float64)]))
        for name in _EXAMPLE:
            path = self.folder / "example" / f"{name}.nii.gz"
            write_image(path, self._pair[name][0].float(), Grid(tuple(shape), affine), overwrite=True)

    def _hand_over(self, run: Any) -> None:
        import wandb  # its run is here, so it is installed

        artefact = wandb.Artifact(f"run-{run.id}", type="model")
        for name in ("config.yaml", "checkpoints/best.ckpt"):
            if (self.folder / name).is_file():
                artefact.add_file(str(self.folder / name), name=name)
        if (self.folder / "example").is_dir():
            artefact.add_dir(str(self.folder / "example"), name="example")
        run.log_artifact(artefact)
