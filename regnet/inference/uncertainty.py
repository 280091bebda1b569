"""What a conditional model is told, and how certain a probabilistic one is."""

import math

import torch
from torch import Tensor

from regnet import ops
from regnet.data.prepare import prepare
from regnet.data.synthesis import Draw, generator_of
from regnet.errors import InputError
from regnet.inference.load import LoadedModel
from regnet.io.image import Image
from regnet.models import Registration
from regnet.spatial.grid import matrix


def told_at_inference(loaded: LoadedModel | None, regularity: float | None, draws: int) -> dict[str, Tensor]:
    """``Model``'s arguments besides the images, once it is sure that the model can do what is asked of it.

    Raises:
        InputError: a weight for a model that takes none, or outside its range; draws of a model that cannot.
    """
    name = "no model" if loaded is None else str(loaded.path)
    if draws and (loaded is None or not loaded.model.probabilistic):
        raise InputError(f"{name}: cannot tell its uncertainty: train one with model=probabilistic_velocity loss=kl")
    if regularity is None:
        return {}
    known = None if loaded is None else loaded.model.regularity
    if known is None:
        raise InputError(f"{name}: takes no lambda: train one with model=conditional_velocity")
    least, most = known
    if not (math.isfinite(regularity) and least <= regularity <= most):
        raise InputError(f"lambda {regularity:g}: {name} was trained with {least:g} to {most:g}")
    return {"regularity": torch.tensor([regularity], dtype=torch.float32)}


def uncertainty(
    loaded: LoadedModel,
    moving: Image,
    fixed: Image,
    draws: int,
    seed: int = 0,
    device: torch.device | str = "cpu",
    **told: Tensor,
) -> Tensor:
    """How far deformations that a probabilistic model draws lie from their mean.

    Args:
        loaded: the model.
        moving, fixed: the images; the moving one where the affine stage has put it.
        draws: how many, two at least.
        seed: of the draws.
        device: where the model runs.
        told: as of ``Model``.

    Returns:
        ``(1, *fixed.grid.shape)`` float32, on the CPU, mm: the standard deviation of all components together. Beyond
        the network's grid it goes on as at its border.

    Source:
        Dalca et al., Medical Image Analysis 2019.
    """
    target = prepare(fixed, loaded.spec)
    source = prepare(moving, loaded.spec, grid=target.grid)
    generators = [generator_of(seed % 2**63, Draw.UNCERTAINTY, number) for number in range(draws)]
    seeds = [int(torch.randint(2**62, (), generator=generator)) for generator in generators]
    model = loaded.model.to(device)
    assert isinstance(model, Registration)  # only that is probabilistic
    with torch.inference_mode():
        spread = model.spread(source.data.to(device), target.data.to(device), seeds, **told).cpu()
        size = torch.tensor(target.grid.spacing, dtype=torch.float32).view(-1, *[1] * target.grid.ndim)
        length = (spread * size).square().sum(1, keepdim=True).sqrt()
        nothing = torch.zeros(1, fixed.grid.ndim, *fixed.grid.shape)
        return ops.warp(length, nothing, bound="replicate", matrix=matrix(fixed.grid, target.grid).float())[0].clone()
