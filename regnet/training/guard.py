"""What stops a run before a value that is not finite reaches its weights."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import torch
from lightning.pytorch import LightningModule
from torch import Tensor

from regnet.errors import InputError
from regnet.io import atomic_path


def check_loss(module: LightningModule, total: Tensor, batch: Mapping[str, Any], together: bool) -> None:
    """Stop where the loss of a batch is not finite.

    Args:
        together: in training all processes stop, or the others would wait for one that has stopped.

    Raises:
        InputError: it is not; the message names the pairs and where the batch was saved.
    """
    finite = bool(total.isfinite())
    all_finite = module.trainer.strategy.reduce_boolean_decision(finite) if together else finite
    if not finite:
        pairs = ", ".join(map(str, batch.get("id", ["?"])))
        remedy = "check the images of this pair, or lower the learning rate"
        stop(module, batch, f"the loss of pair {pairs} is {total.item()}", remedy)
    if not all_finite:
        raise InputError(f"{_where(module)}: another process has stopped")


def check_gradient(module: LightningModule, batch: Mapping[str, Any]) -> None:
    """Stop where a gradient is not finite; in half precision a scaler passes over such a step and scales less.

    Raises:
        InputError: it is not.
    """
    if getattr(module.trainer.precision_plugin, "scaler", None) is not None:
        return
    gradients = [parameter.grad for parameter in module.parameters() if parameter.grad is not None]
    if gradients and not torch.stack([gradient.abs().max() for gradient in gradients]).isfinite().all():
        stop(module, batch, "the gradient is not finite", "lower the learning rate, or check the images")


def stop(module: LightningModule, batch: Mapping[str, Any], found: str, remedy: str) -> NoReturn:
    """Save the batch as ``nan_batch.pt`` in the run's folder, and raise the ``InputError`` that says so."""
    trainer = module.trainer
    rank = f"_{trainer.global_rank}" if trainer.world_size > 1 else ""
    path = Path(trainer.default_root_dir) / f"nan_batch{rank}.pt"
    with atomic_path(path, overwrite=True) as temporary:
        torch.save(dict(batch), temporary)
    raise InputError(
        f"{_where(module)}: {found}; training stops before the weights are lost: {remedy}; the batch is in {path}"
    )


def _where(module: LightningModule) -> str:
    return f"epoch {module.current_epoch}, step {module.global_step}"
