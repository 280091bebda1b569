"""Losses are computed in float32 at least, whatever region of mixed precision they are called in."""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

P = ParamSpec("P")
T = TypeVar("T")


def full_precision(function: Callable[P, T]) -> Callable[P, T]:
    """Turn autocast off inside ``function``, and hand it float32 for float16 and bfloat16.

    The cast is part of the graph, so that each gradient comes back in its leaf's type.
    """

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
        if not tensors:
            return function(*args, **kwargs)
        with torch.autocast(tensors[0].device.type, enabled=False):
            wider: Any = function
            result: T = wider(*map(_widen, args), **{name: _widen(value) for name, value in kwargs.items()})
            return result

    return wrapped


def as_float(tensor: Tensor) -> Tensor:
    """Integers as float32: their differences must neither wrap nor overflow."""
    return tensor if tensor.is_floating_point() else tensor.float()


def _widen(value: Any) -> Any:
    half = isinstance(value, Tensor) and value.dtype in (torch.float16, torch.bfloat16)
    return value.float() if half else value
