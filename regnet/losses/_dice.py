"""The Dice coefficient of label maps from its sums, label by label, and its gradient."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class SoftDice(torch.autograd.Function):
    """One minus the mean Dice of soft maps, which keeps nothing but the maps themselves for the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, mask: Tensor | None, squares: bool) -> Tensor:
        both, either = x.new_zeros((2, *x.shape[:2]), dtype=torch.float64)
        for label in range(x.shape[1]):
            a, b, w = x[:, label].flatten(1), y[:, label].flatten(1), _of_label(mask, label)
            both[:, label] = 2 * _total(a, b, w)
            either[:, label] = _total(a, a if squares else None, w) + _total(b, b if squares else None, w)
        value, of_both, of_either = dice_of_sums(both, either)
        ctx.save_for_backward(x, y, mask, 2 * of_both, of_either)
        ctx.squares = squares
        return value.to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor | None, ...]:
        x, y, mask, of_both, of_either = ctx.saved_tensors
        slopes = of_both * cotangent, of_either * cotangent
        wants_x, wants_y, *_ = ctx.needs_input_grad
        return (
            _gradient(x, y, mask, *slopes, ctx.squares) if wants_x else None,
            _gradient(y, x, mask, *slopes, ctx.squares) if wants_y else None,
            None,
            None,
        )


def dice_of_sums(both: Tensor, either: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One minus the mean of ``both / either`` where ``either`` is not 0, and its derivatives in the two."""
    present = either > 0
    share = present / present.sum().clamp(min=1)
    safe = torch.where(present, either, 1)
    dice = both / safe
    return ((1 - dice) * share).sum(), -share / safe, share * dice / safe


def _gradient(
    own: Tensor, other: Tensor, mask: Tensor | None, of_both: Tensor, of_either: Tensor, squares: bool
) -> Tensor:
    gradient = torch.empty_like(own)
    for label in range(own.shape[1]):
        a, b = (c[:, label].to(own.dtype).view(-1, *[1] * (own.dim() - 2)) for c in (of_both, of_either))
        part = torch.mul(other[:, label], a, out=gradient[:, label])
        if squares:
            part.addcmul_(own[:, label], 2 * b)
        else:
            part.add_(b)
        if mask is not None:
            part.mul_(mask[:, min(label, mask.shape[1] - 1)])
    return gradient


def _of_label(mask: Tensor | None, label: int) -> Tensor | None:
    return None if mask is None else mask[:, min(label, mask.shape[1] - 1)].flatten(1)


def _total(a: Tensor, b: Tensor | None, weight: Tensor | None) -> Tensor:
    """Σ a b weight per sample; those that are None left out."""
    if weight is not None:
        a = a * weight.to(a.dtype)
    return a.sum(1) if b is None else torch.einsum("ns,ns->n", a, b)
