"""How well two sets of samples explain each other, under weights: what the affine stage maximises."""

import torch
from torch import Tensor

from regnet import ops

_BINS = 32
_TINY = 1e-12


def mutual_information(fixed: Tensor, moving: Tensor, weight: Tensor) -> Tensor:
    """Normalised mutual information: it knows no contrast, and gains nothing from a smaller overlap.

    The joint histogram has 32 x 32 bins over [0, 1]; a sample enters it with a linear window along the fixed and a
    cubic one along the moving intensity.

    Args:
        fixed: ``(K or 1, C, n)``, in [0, 1].
        moving: ``(K, C, n)``, in [0, 1].
        weight: ``(K, n)``, at least 0.

    Returns:
        ``(K,)``: (H(fixed) + H(moving)) / H(both), the mean over the channels; 1 (independent) to 2.

    Source:
        Mattes et al., IEEE TMI 2003 (the windows); Studholme et al., Pattern Recognition 1999 (the ratio).
    """
    count, channels, samples = moving.shape
    # Cubic windows reach two bins to each side.
    place = torch.stack([fixed.expand_as(moving) * (_BINS - 1), 1.5 + moving * (_BINS - 4)], dim=2)
    coords = place.reshape(count * channels, 2, 1, samples)
    value = weight[:, None].expand(-1, channels, -1).reshape(count * channels, 1, 1, samples)
    joint = ops.push(value, coords, (_BINS, _BINS), order=(1, 3), bound="zero")
    joint = joint.reshape(count, channels, _BINS, _BINS)
    joint = joint / joint.sum(dim=(2, 3), keepdim=True).clamp(min=_TINY)
    both = _entropy(joint.flatten(2))
    return ((_entropy(joint.sum(2)) + _entropy(joint.sum(3))) / both.clamp(min=_TINY)).mean(1)


def correlation(fixed: Tensor, moving: Tensor, weight: Tensor) -> Tensor:
    """Squared correlation coefficient, the mean over the channels, ``(K,)``, 0 to 1; arguments as above."""
    weight = weight[:, None] / weight.sum(1).clamp(min=_TINY)[:, None, None]
    fixed = fixed - (weight * fixed).sum(2, keepdim=True)
    moving = moving - (weight * moving).sum(2, keepdim=True)
    product = (weight * fixed * moving).sum(2)
    powers = (weight * fixed.square()).sum(2) * (weight * moving.square()).sum(2)
    return (product.square() / powers.clamp(min=_TINY)).mean(1)


def _entropy(probability: Tensor) -> Tensor:
    return -torch.special.xlogy(probability, probability.clamp(min=_TINY)).sum(-1)
