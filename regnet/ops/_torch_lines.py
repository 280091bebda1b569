"""Filters along lines in plain torch, beside :mod:`regnet.ops._torch`: one sparse or dense matrix an axis."""

import functools
import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from regnet.ops._torch_taps import taps


def lattice(image: Tensor, out: Tensor, shape: list[int], *rest: Any) -> None:
    """``regnet::lattice``: a spline along every axis at ``(scale p / spacing + offset) / divisor``, or the adjoint."""
    out.copy_(on_lattice(image, shape, *rest))


def on_lattice(image: Tensor, shape: list[int], *rest: Any) -> Tensor:
    """``lattice`` without a change to any tensor, as tracers want it."""
    *per_axis, adjoint = rest
    for axis, (order, bound, spacing, scale, offset, divisor) in enumerate(zip(*per_axis, strict=True), start=2):
        nodes, samples = (shape[axis - 2], image.shape[axis])[:: 1 if adjoint else -1]
        p = torch.arange(samples, dtype=_wide(image), device=image.device)
        x = (scale * (p / spacing) + offset) / divisor
        moved = image.new_zeros(*image.shape[:axis], shape[axis - 2], *image.shape[axis + 1 :])
        for index, _, (weight,) in taps(x, nodes, order, bound, 0):
            w = weight.to(image.dtype).reshape(-1, *[1] * (image.ndim - axis - 1))
            values = torch.where(w != 0, (image if adjoint else image.index_select(axis, index)) * w, 0)
            moved = moved.index_add(axis, index, values) if adjoint else moved + values
        image = moved
    return image


def prefilter(image: Tensor, out: Tensor, order: list[int], bound: list[int], adjoint: bool) -> None:
    """``regnet::prefilter``: the inverse of the interpolation, as one dense matrix an axis."""
    lines = image.to(_wide(image))
    for axis, (o, b) in enumerate(zip(order, bound, strict=True), start=2):
        if o > 1:
            inverse = _inverse(image.shape[axis], o, b, lines.device, lines.dtype)
            lines = lines.movedim(axis, -1).contiguous()
            # Into `out`, since autocast would round the factors of another matmul to half precision.
            product = torch.matmul(lines, inverse if adjoint else inverse.T, out=torch.empty_like(lines))
            lines = product.movedim(-1, axis)
    out.copy_(lines)


@functools.lru_cache(maxsize=32)
def _inverse(n: int, order: int, bound: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """``(n, n)``, from samples to coefficients; kept, since finding it takes the CPU and float64."""
    rows = torch.arange(n, device="cpu")
    matrix = torch.zeros(n, n, dtype=torch.float64, device="cpu")
    for index, _, (weight,) in taps(rows.double(), n, order, bound, 0):
        matrix[rows, index] += weight
    return torch.linalg.inv(matrix).to(device, dtype)


def box_sum(image: Tensor, out: Tensor, window: list[int]) -> None:
    """``regnet::box_sum``: the sum over a centred window, along one axis after the other."""
    sums = image.to(_wide(image))
    for axis, w in enumerate(window, start=2):
        lines = sums.reshape(1, -1, image.shape[axis], math.prod(image.shape[axis + 1 :]))
        sums = avg_pool2d(lines, (w, 1), 1, (w // 2, 0), divisor_override=1)
    out.copy_(sums.reshape(image.shape))


def _wide(image: Tensor) -> torch.dtype:
    return torch.float32 if image.device.type == "mps" else torch.float64
