"""Masks: the weight of each voxel, the checks of shapes, and means over what counts."""

import torch
from torch import Tensor

from regnet.losses._differences import check_flow
from regnet.losses._precision import as_float


def check_pair(x: Tensor, y: Tensor, mask: Tensor | None, what: str = "images") -> tuple[Tensor, Tensor, Tensor | None]:
    """Refuse two images and a mask of shapes that do not fit.

    Args:
        x, y: ``(N, C, *spatial)``.
        mask: ``(N or 1, C or 1, *spatial)``.
        what: their name in the message.

    Returns:
        The images, integers as float32, both in the wider of their types, and where the mask is 0 freed of what is not
        finite, so that it hides that from values and gradients; and the mask, which no loss differentiates.

    Raises:
        ValueError: they do not fit.
    """
    if x.dim() < 3 or x.shape != y.shape:
        raise ValueError(
            f"{what} must both be (N, C, *spatial) of one shape: got {tuple(x.shape)} and {tuple(y.shape)}"
        )
    if x.numel() == 0:
        raise ValueError(f"{what} must not be empty: got {tuple(x.shape)}")
    mask = check_mask(mask, x, what)
    x, y = as_float(x), as_float(y)
    dtype = torch.promote_types(x.dtype, y.dtype)
    return _hidden(x.to(dtype), mask), _hidden(y.to(dtype), mask), mask


def check_field(flow: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """The same of a field ``(N, D, *spatial)`` and the weight of each voxel, ``(N or 1, 1, *spatial)``."""
    flow = check_flow(flow)
    mask = check_mask(mask, flow[:, :1], "the channels of a flow like")
    return _hidden(flow, mask), mask


def check_mask(mask: Tensor | None, like: Tensor, what: str) -> Tensor | None:
    """The mask, detached, negative weights as 0, if it is ``(N or 1, C or 1, *spatial)`` of ``like``; or ValueError."""
    if mask is None:
        return None
    fits = mask.dim() == like.dim() and mask.shape[2:] == like.shape[2:]
    if not fits or mask.shape[0] not in (1, like.shape[0]) or mask.shape[1] not in (1, like.shape[1]):
        raise ValueError(
            f"mask must be (N or 1, C or 1, *spatial) for {what} {tuple(like.shape)}: got {tuple(mask.shape)}"
        )
    return mask.detach() if mask.dtype == torch.bool else mask.detach().clamp(min=0)


def weighted_mean(values: Tensor, mask: Tensor | None) -> Tensor:
    """Mean over samples of each sample's mean over its mask; a sample with an empty mask adds 0.

    Args:
        values: ``(N, C, *spatial)``.
        mask: weight of each voxel, >= 0, ``(N or 1, C or 1, *spatial)``. What it weighs with 0 is not even read, so
            that it may be NaN.

    Returns:
        0-d.
    """
    if mask is None:
        return values.mean()
    weight = mask.to(values.dtype).expand_as(values).flatten(1)
    total = weight.sum(1)
    seen = torch.where(weight > 0, values.flatten(1), 0)
    return ((weight * seen).sum(1) / torch.where(total > 0, total, 1)).mean()


def _hidden(values: Tensor, mask: Tensor | None) -> Tensor:
    return values if mask is None else values.masked_fill((mask == 0) & ~values.isfinite(), 0)
