"""What a model is told besides the images, as a function of seed, epoch and sample."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from regnet.data.synthesis import Draw, generator_of
from regnet.models import Model


def what_is_told(model: Model, batch: Mapping[str, Any], seed: int, epoch: int | None) -> dict[str, Tensor]:
    """The arguments of ``Model.forward`` that are no images.

    Args:
        model: the model.
        batch: ``fixed`` ``(N, C, *spatial)`` and, of regnet's datasets, ``index`` ``(N,)``; without it, samples count
            from 0 in every batch.
        seed: of every draw.
        epoch: of the training; ``None``: nothing is drawn.

    Returns:
        ``regularity`` ``(N,)`` for a conditional model: uniform in its range, the same for all samples of a batch, so
        that their losses can be added up; the middle where nothing is drawn. ``draw`` ``(N,)`` for a probabilistic
        one, in training.
    """
    fixed: Tensor = batch["fixed"]
    indices = [int(index) for index in batch.get("index", range(len(fixed)))]
    told = {}
    if model.regularity is not None:
        least, most = model.regularity
        share = 0.5
        if epoch is not None:
            share = float(torch.rand((), generator=generator_of(seed, Draw.REGULARITY, epoch, indices[0])))
        told["regularity"] = fixed.new_full((len(fixed),), least + share * (most - least), dtype=torch.float32)
    if model.probabilistic and epoch is not None:
        draws = [torch.randint(2**62, (), generator=generator_of(seed, Draw.SAMPLE, epoch, index)) for index in indices]
        told["draw"] = torch.stack(draws)
    return told
