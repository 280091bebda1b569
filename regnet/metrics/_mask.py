"""What a mask leaves of a field, and the type in which fields are measured."""

import torch
from torch import Tensor


def check_mask(mask: Tensor | None, like: Tensor) -> None:
    """Refuse a mask that is not ``(N or 1, 1, *spatial)`` of the field ``like``."""
    if mask is None:
        return
    fits = mask.dim() == like.dim() and mask.shape[2:] == like.shape[2:]
    if not fits or mask.shape[0] not in (1, like.shape[0]) or mask.shape[1] not in (1, like.shape[1]):
        raise ValueError(f"mask must be (N or 1, 1, *spatial) for {tuple(like.shape)}: got {tuple(mask.shape)}")


def wide(field: Tensor) -> Tensor:
    """The field in float32 at least: squares overflow in half precision and wrap in integers."""
    return field if field.dtype == torch.float64 else field.float()


def inside(field: Tensor, mask: Tensor | None) -> Tensor:
    """The values of ``field`` inside the mask, flat, on the CPU."""
    field = field.detach().cpu()
    if mask is None:
        return field.flatten()
    check_mask(mask, field)
    # By numpy, which picks several times as fast as torch.
    return torch.from_numpy(wide(field).numpy()[(mask.cpu() > 0).expand_as(field).numpy()])
