"""How well label maps cover each other: 0 is exactly."""

import torch
from torch import Tensor


def soft_dice(x: Tensor, y: Tensor, mask: Tensor | None = None) -> Tensor:
    """One minus the mean Dice coefficient of soft label maps.

    Dice = 2 Σ x y / Σ (x² + y²), which is 1 for equal maps even where they are soft (with Σ (x + y) below it is not)
    and the usual coefficient for hard ones. A label absent from both maps of a sample is left out of the mean.

    Args:
        x, y: ``(N, L, *spatial)``, one channel a label, in [0, 1].
        mask: weight of each voxel, >= 0, ``(N or 1, L or 1, *spatial)``. It is not differentiated.

    Returns:
        0-d in [0, 1]; 0 where there is no label to compare.

    Raises:
        ValueError: the shapes do not fit.

    Source:
        Milletari et al., 3DV 2016.
    """
    if x.dim() < 3 or x.shape != y.shape:
        raise ValueError(
            f"label maps must both be (N, L, *spatial) of one shape: got {tuple(x.shape)}, {tuple(y.shape)}"
        )
    product, square = x * y, x.square() + y.square()
    if mask is not None:
        if mask.dim() != x.dim() or mask.shape[2:] != x.shape[2:]:
            raise ValueError(f"mask must be (N or 1, L or 1, *spatial) for {tuple(x.shape)}: got {tuple(mask.shape)}")
        product, square = product * mask.detach(), square * mask.detach()
    both, either = 2 * product.flatten(2).sum(2), square.flatten(2).sum(2)
    present = either > 0
    dice = both / torch.where(present, either, 1)
    return ((1 - dice) * present).sum() / present.sum().clamp(min=1)
