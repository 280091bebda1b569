"""Fit a copy of the network to one pair."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace

import torch
from torch import Tensor

from regnet.data.prepare import prepare, prepare_mask
from regnet.inference.load import LoadedModel
from regnet.inference.refine.descent import Clock, Progress, descend
from regnet.io.image import Image
from regnet.losses import LNCC, Diffusion, Objective


def finetune(
    loaded: LoadedModel,
    moving: Image,
    fixed: Image,
    steps: int,
    *,
    moving_mask: Image | None = None,
    fixed_mask: Image | None = None,
    objective: Objective | None = None,
    window: int = 5,
    smoothness: float = 0.5,
    learning_rate: float = 1e-4,
    seconds: float | None = None,
    device: torch.device | str = "cpu",
    progress: Progress | None = None,
    told: Mapping[str, Tensor] | None = None,
) -> LoadedModel:
    """Go on training a copy of a network on this pair alone, with Adam; on it, the copy is never worse.

    Args:
        loaded: the network; its weights are not touched.
        moving, fixed: the images, each on its own grid.
        steps: optimiser steps, at most.
        moving_mask, fixed_mask: images on the same grids; what is 0 there does not count in the similarity.
        objective, window, smoothness: as of :func:`regnet.inference.refine.refine`.
        learning_rate: Adam's.
        seconds: time that it may take.
        device: where it runs.
        progress: called after every step.
        told: handed on to the model besides the images.

    Returns:
        The copy, in evaluation mode, its weights frozen.

    Raises:
        ValueError: ``steps`` is less than 1, ``seconds`` not positive, or the loss is not finite at the start.
    """
    if steps < 1:
        raise ValueError(f"fine-tuning needs at least 1 step, got {steps}")
    clock = Clock.of(seconds)
    model = deepcopy(loaded.model).to(device).requires_grad_(True)
    target = prepare(fixed, loaded.spec)
    source = prepare(moving, loaded.spec, grid=target.grid)
    for prepared, mask in ((target, fixed_mask), (source, moving_mask)):
        if mask is not None:
            prepared.view.mul_(prepare_mask(mask, target.grid))
    objective = objective or Objective({"similarity": LNCC(window=window), "smoothness": Diffusion(weight=smoothness)})
    images = [image.to(device) for image in (source.data, target.data, source.view)]
    batch = {
        "fixed": images[1],
        "moving": images[0],
        "fixed_mask": target.view.to(device),
        "spacing": images[1].new_tensor([target.grid.spacing]),
    }

    def loss() -> Tensor:
        total: Tensor = objective(model(*images, **(told or {})), batch)[0]
        return total

    def report(step: int, number: float) -> None:
        if progress is not None:
            progress(step, steps, number)

    descend(list(model.parameters()), loss, steps, learning_rate, clock, report)
    return replace(loaded, model=model.cpu().requires_grad_(False))
