"""Checks at the public edge of the operators: one line that says what was wanted, what came and what to do."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def image(name: str, tensor: Tensor, ndim: int | None = None) -> int:
    """``(N, C, *spatial)`` with 1 to 3 spatial axes, floating point; returns the number of spatial axes."""
    floating(name, tensor)
    if not 3 <= tensor.ndim <= 5 or (ndim is not None and tensor.ndim != ndim + 2):
        axes = "1 to 3 spatial axes" if ndim is None else f"{ndim} spatial axes, like the coordinates"
        raise ValueError(f"{name} must be (N, C, *spatial) with {axes}, got {tuple(tensor.shape)}")
    return tensor.ndim - 2


def field(name: str, tensor: Tensor) -> int:
    """``(N, D, *spatial)`` with one channel per spatial axis; returns D."""
    floating(name, tensor)
    if not 3 <= tensor.ndim <= 5 or tensor.shape[1] != tensor.ndim - 2:
        wanted = f"{tensor.ndim - 2}" if 3 <= tensor.ndim <= 5 else "D"
        points = "; P points in 3-D are (N, 3, P, 1, 1), in 2-D (N, 2, P, 1)" if tensor.ndim == 3 else ""
        raise ValueError(
            f"{name} must be (N, {wanted}, *spatial), one channel per spatial axis, 1 to 3 of them, "
            f"got {tuple(tensor.shape)}{points}"
        )
    return tensor.ndim - 2


def affine(name: str, tensor: Tensor, ndim: int) -> None:
    """``(N, D, D + 1)``, floating point."""
    floating(name, tensor)
    if tensor.ndim != 3 or tuple(tensor.shape[1:]) != (ndim, ndim + 1):
        raise ValueError(
            f"{name} must be (N, {ndim}, {ndim + 1}), from fixed to moving voxels, got {tuple(tensor.shape)}"
        )


def shape(name: str, value: Sequence[int], ndim: int) -> list[int]:
    """``ndim`` sizes, 0 among them where a grid may be empty."""
    sizes = list(value) if isinstance(value, Sequence) else []
    if len(sizes) != ndim or not all(isinstance(n, int) and n >= 0 for n in sizes):
        got = f"a tensor; give its .shape[{-ndim}:]" if isinstance(value, Tensor) else repr(value)
        hint = "; of an image, give .shape[2:]" if len(sizes) == ndim + 2 else ""
        raise ValueError(f"{name} must be {ndim} sizes, one per spatial axis, got {got}{hint}")
    return sizes


def voxels(name: str, sizes: Sequence[int], samples: Tensor) -> None:
    """Voxels where there are samples to take from them or to add to them."""
    if 0 in sizes and samples.numel():
        raise ValueError(f"{name} has no voxels, its spatial shape is {tuple(sizes)}")


def per_axis(value: Any, ndim: int, kind: type) -> list[Any]:
    """Values of a kind, one for each axis or one for all; none where ``value`` is anything else."""
    values = [value] * ndim if isinstance(value, kind) else list(value) if isinstance(value, Sequence) else []
    return values if len(values) == ndim and all(isinstance(v, kind) for v in values) else []


def count(name: str, value: int) -> None:
    """A whole number from 0 on."""
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"{name} must be a whole number, 0 or more, got {value!r}")


def together(**tensors: Tensor | None) -> tuple[int, torch.dtype]:
    """Common batch size (1 broadcasts) and type of computation of tensors on one device."""
    given = [t for t in tensors.values() if t is not None]
    device = given[0].device
    if any(t.device != device for t in given):
        names = " and ".join(name for name, t in tensors.items() if t is not None)
        raise ValueError(f"{names} must be on one device, got {' and '.join(sorted({str(t.device) for t in given}))}")
    sizes = {t.shape[0] for t in given} - {1}
    if len(sizes) > 1:
        shapes = ", ".join(f"{name} {tuple(t.shape)}" for name, t in tensors.items() if t is not None)
        raise ValueError(f"batch sizes must be equal or 1, got {shapes}")
    double = any(t.dtype == torch.float64 for t in given)
    return (sizes.pop() if sizes else 1), torch.float64 if double else torch.float32


def floating(name: str, tensor: Tensor) -> None:
    """A dense floating-point tensor."""
    dense(name, tensor)
    if tensor.dtype not in FLOATS:
        raise ValueError(f"{name} must be floating point, got {tensor.dtype}; convert it with .float()")


def dense(name: str, tensor: Tensor) -> None:
    """A tensor with strides."""
    if not isinstance(tensor, Tensor):
        raise ValueError(f"{name} must be a torch tensor, got {type(tensor).__name__}")
    if tensor.layout != torch.strided:
        raise ValueError(f"{name} must be a dense tensor, got {tensor.layout}; convert it with .to_dense()")
