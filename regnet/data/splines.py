"""Smooth fields from a few numbers: uniform cubic B-splines on a lattice, evaluated axis by axis."""

from collections.abc import Sequence
from functools import lru_cache
from math import ceil

import torch
from torch import Tensor


def control_shape(shape: Sequence[int], spacing: float) -> tuple[int, ...]:
    """Control points per axis that :func:`spline_field` needs for a grid of ``shape``, ``spacing`` voxels apart."""
    return tuple(ceil((n - 1) / spacing) + 3 for n in shape)


def spline_field(control: Tensor, shape: Sequence[int], spacing: float) -> Tensor:
    """Evaluate a cubic B-spline on a grid: ``sum_k control[k] prod_d b3(p_d / spacing + 1 - k_d)``.

    Args:
        control: ``(N, C, *control_shape(shape, spacing))``.
        shape: of the grid.
        spacing: of the control points, voxels.

    Returns:
        ``(N, C, *shape)``.
    """
    for axis, size in enumerate(shape):
        weights = _weights(size, float(spacing)).to(control)
        control = torch.movedim(torch.movedim(control, axis + 2, -1) @ weights.T, -1, axis + 2)
    return control.contiguous()


def random_field(
    shape: Sequence[int],
    spacing: float,
    channels: int,
    generator: torch.Generator,
    device: torch.device | str | None = None,
) -> Tensor:
    """A smooth random field ``(1, channels, *shape)``: mean 0, deviation 1 at the control points' spacing.

    The control points are drawn on the CPU, so the field is the same on every device, up to rounding.
    """
    control = torch.randn(1, channels, *control_shape(shape, spacing), generator=generator).to(device)
    # deviation of sum_k w_k b3(t - k) for independent normal w_k, averaged over t: (151/315) per axis in variance
    return spline_field(control, shape, spacing) / (151 / 315) ** (len(shape) / 2)


@lru_cache(maxsize=64)
def _weights(size: int, spacing: float) -> Tensor:
    """``(size, points)``: b3 at every voxel, for every control point."""
    position = torch.arange(size, dtype=torch.float64)[:, None] / spacing + 1
    distance = (position - torch.arange(*control_shape((size,), spacing), dtype=torch.float64)).abs()
    inner = 2 / 3 - distance**2 * (1 - distance / 2)
    outer = (2 - distance).clamp(min=0) ** 3 / 6
    return torch.where(distance < 1, inner, outer).float()
