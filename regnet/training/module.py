"""The LightningModule: one step of training, one of validation, and what a checkpoint says about itself."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

import regnet
from regnet.losses import Objective
from regnet.models import Model
from regnet.training.guard import check_gradient, check_loss
from regnet.training.means import Means
from regnet.training.measure import check_names, measure
from regnet.training.told import what_is_told

Batch = Mapping[str, Any]


class RegistrationModule(pl.LightningModule):
    """Train a registration model; needs nothing but a ``lightning.Trainer`` and a datamodule.

    Args:
        model: the model.
        loss: called as ``loss(outputs, batch)``, returns the total and the raw value of each term
            (``regnet.losses.Objective``, whose weighted values and units are logged too).
        optimizer: makes the optimiser from the parameters.
        scheduler: makes the learning-rate schedule from the optimiser; it steps once an epoch.
        model_config: the plain dictionary that ``regnet.models.build`` makes ``model`` from. It goes into every
            checkpoint, with ``spec``, so that the file alone can be loaded; without it, it cannot.
        spec: input contract of the model, as plain values (``InputSpec.to_dict()``).
        objective: logged value that a ``ReduceLROnPlateau`` watches.
        seed: of what a model is told in training: see ``regnet.training.told``.

    Raises:
        ValueError: a term of the loss has the name of another figure of the log, such as ``dice``.
    """

    def __init__(
        self,
        model: Model,
        loss: nn.Module,
        optimizer: Callable[[Iterable[nn.Parameter]], Optimizer] = partial(torch.optim.Adam, lr=1e-3),  # noqa: B008
        scheduler: Callable[[Optimizer], LRScheduler] | None = None,
        model_config: Mapping[str, Any] | None = None,
        spec: Mapping[str, Any] | None = None,
        objective: str = "val/loss",
        seed: int = 0,
    ) -> None:
        super().__init__()
        if isinstance(loss, Objective):
            check_names(loss.terms)
        self.model = model
        self.loss = loss
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.objective = objective
        self._means = {stage: Means() for stage in ("train", "val", "test")}
        self._batch: Batch = {}  # the one in training, to be saved should it spoil the gradient
        self.seed = seed
        # Plain containers only: anything else in a checkpoint is refused by `torch.load(weights_only=True)`.
        about = {"model": model_config, "spec": spec, "regnet": regnet.__version__}
        self.save_hyperparameters({name: value for name, value in about.items() if value is not None})

    def forward(
        self,
        moving: Tensor,
        fixed: Tensor,
        view: Tensor | None = None,
        source: Tensor | None = None,
        matrix: Tensor | None = None,
        **told: Tensor,
    ) -> dict[str, Tensor]:
        """What the model says; see ``Model``."""
        outputs: dict[str, Tensor] = self.model(moving, fixed, view, source, matrix, **told)
        return outputs

    def on_fit_start(self) -> None:
        """Tell every term of the loss, and in which unit it counts."""
        if isinstance(self.loss, Objective):
            for line in self.loss.describe():
                self.print(f"loss.terms.{line}")

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Loss of one batch.

        Raises:
            InputError: the loss is not finite; the message names the pairs. No weight has been touched by them.
        """
        self._batch = batch
        _, total = self._evaluate(batch, "train")
        self.log("loss", total.detach(), prog_bar=True, logger=False)
        self.log("step/loss", total.detach(), batch_size=len(batch["fixed"]), sync_dist=True)
        self._means["train"].add({"train/lr": self.trainer.optimizers[0].param_groups[0]["lr"]}, len(batch["fixed"]))
        return total

    def validation_step(self, batch: Batch, batch_idx: int) -> dict[str, Tensor]:
        """Log loss, overlap, folding and, where the true field is known, the end-point error (mm)."""
        return self._assess(batch, "val")

    def test_step(self, batch: Batch, batch_idx: int) -> dict[str, Tensor]:
        """The same for the test split."""
        return self._assess(batch, "test")

    def on_before_optimizer_step(self, optimizer: Optimizer) -> None:
        """Stop before a gradient that is not finite reaches the weights.

        Raises:
            InputError: it is not.
        """
        check_gradient(self, self._batch)

    def configure_optimizers(self) -> Any:
        """Optimiser of what is not frozen, and schedule where there is one."""
        optimizer = self.optimizer(parameter for parameter in self.parameters() if parameter.requires_grad)
        if self.scheduler is None:
            return optimizer
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": self.scheduler(optimizer), "monitor": self.objective},
        }

    # Lightning steps a ReduceLROnPlateau after the epoch's checkpoint is written, so that a resumed run would miss a
    # step: it is stepped here instead, before that.
    def lr_scheduler_step(self, scheduler: Any, metric: Any) -> None:
        """Step a schedule that watches no value."""
        if not isinstance(scheduler, ReduceLROnPlateau):
            super().lr_scheduler_step(scheduler, metric)

    def on_train_epoch_end(self) -> None:
        """Log the epoch, and step a schedule that watches a value."""
        self._log_epoch("train")
        scheduler = self.lr_schedulers()
        if isinstance(scheduler, ReduceLROnPlateau):
            scheduler.step(self.trainer.callback_metrics[self.objective])

    def on_validation_epoch_end(self) -> None:
        """Log the validation."""
        self._log_epoch("val")

    def on_test_epoch_end(self) -> None:
        """Log the test."""
        self._log_epoch("test")

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """In the middle of an epoch: what its means are made of so far."""
        checkpoint["means"] = self._means["train"].state()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Go on with them."""
        self._means["train"].load(checkpoint.get("means", {}))

    def _log_epoch(self, stage: str) -> None:
        # What every process has by now is the same; Lightning does not know, and asks for `sync_dist`.
        self.log_dict(self._means[stage].take(), on_step=False, on_epoch=True, batch_size=1, sync_dist=True)

    def judge(self, batch: Batch, epoch: int | None) -> tuple[dict[str, Tensor], Tensor, dict[str, Tensor]]:
        """What the model says of a batch in that epoch (None: in validation), the loss, and its terms."""
        own = batch.get("source"), batch.get("matrix")
        told = what_is_told(self.model, batch, self.seed, epoch)
        outputs = self(batch["moving"], batch["fixed"], batch.get("view"), *own, **told)
        if isinstance(self.loss, Objective) and self.loss.wants_swap(outputs):
            outputs["swapped_displacement"] = self(batch["fixed"], batch["moving"], **told)["displacement"]
        total, terms = self.loss(outputs, batch)
        check_names(terms)  # of a loss of the user's own, they are only known now
        return outputs, total, terms

    def _evaluate(self, batch: Batch, stage: str) -> tuple[dict[str, Tensor], Tensor]:
        outputs, total, terms = self.judge(batch, self.current_epoch if stage == "train" else None)
        check_loss(self, total, batch, together=stage == "train")
        if isinstance(self.loss, Objective):
            weighted = {f"weighted/{name}": value for name, value in self.loss.weighted(terms, outputs).items()}
            terms = {**terms, **weighted}
        values = {f"{stage}/{name}": value for name, value in {"loss": total, **terms}.items()}
        self._means[stage].add(values, len(batch["fixed"]))
        return outputs, total

    def _assess(self, batch: Batch, stage: str) -> dict[str, Tensor]:
        outputs, _ = self._evaluate(batch, stage)
        values = measure(outputs, batch)
        self._means[stage].add({f"{stage}/{name}": value for name, value in values.items()}, len(batch["fixed"]))
        return outputs
