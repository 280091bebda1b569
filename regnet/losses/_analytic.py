"""Scalars whose gradient is computed together with their value.

A loss is one number, so its gradient is one field whatever comes after it. Computing the field beside the value, while
the intermediate fields are at hand, leaves nothing else to keep until the backward pass.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class _Analytic(torch.autograd.Function):
    """A value that was computed outside autograd, with the gradients that belong to it."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, count: int, *tensors: Tensor | None) -> Tensor:
        ctx.save_for_backward(*tensors[count:])
        return value.view_as(value)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.saved_tensors
        scaled = [None if g is None else g * cotangent.to(g.dtype) for g in gradients]
        return (None, None, *scaled, *[None] * len(gradients))


def wants_gradient(tensor: Tensor) -> bool:
    """Whether a backward pass can ask for the gradient of ``tensor``."""
    return torch.is_grad_enabled() and tensor.requires_grad


def attach(value: Tensor, *pairs: tuple[Tensor, Tensor | None]) -> Tensor:
    """Tie a scalar to the tensors that it came from.

    Args:
        value: 0-d, computed without autograd.
        pairs: (tensor, d value / d tensor); None where no gradient is wanted.

    Returns:
        ``value``, differentiable once in each tensor.
    """
    tensors = [tensor for tensor, _ in pairs]
    gradients = [None if gradient is None else gradient.to(tensor.dtype) for tensor, gradient in pairs]
    return _Analytic.apply(value, len(pairs), *tensors, *gradients)
