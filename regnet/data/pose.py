"""Random poses: affine maps of a grid's voxels about its centre."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def random_pose(
    shape: Sequence[int],
    spacing: Sequence[float],
    rotation_deg: float,
    scaling: float,
    shift_mm: float,
    generator: torch.Generator,
) -> Tensor:
    """A rotation, a scaling and a shift, each uniform up to its largest value.

    Args:
        shape, spacing: of the grid; mm.
        rotation_deg: about each axis (in 3-D; in 2-D in the plane).
        scaling: logarithm, along each axis.
        shift_mm: along each axis.
        generator: the only source of randomness.

    Returns:
        ``(1, D, D + 1)``, voxels -> voxels, float64.
    """
    ndim = len(shape)
    planes = [(i, j) for i in range(ndim) for j in range(i + 1, ndim)]
    draws = (2 * torch.rand(len(planes) + 2 * ndim, generator=generator, dtype=torch.float64) - 1).tolist()
    linear = torch.eye(ndim, dtype=torch.float64)
    for (i, j), draw in zip(planes, draws, strict=False):
        angle = math.radians(rotation_deg) * draw
        turn = torch.eye(ndim, dtype=torch.float64)
        turn[i, i] = turn[j, j] = math.cos(angle)
        turn[i, j], turn[j, i] = -math.sin(angle), math.sin(angle)
        linear = turn @ linear
    sizes, shifts = draws[len(planes) : len(planes) + ndim], draws[len(planes) + ndim :]
    linear = linear * torch.tensor([math.exp(scaling * size) for size in sizes], dtype=torch.float64)
    steps = torch.tensor(spacing, dtype=torch.float64)
    linear = linear * steps / steps[:, None]  # it turns in mm
    shift = shift_mm * torch.tensor(shifts, dtype=torch.float64) / steps
    centre = (torch.tensor(shape, dtype=torch.float64) - 1) / 2
    return torch.cat([linear, (centre - linear @ centre + shift)[:, None]], dim=1)[None]


def then(outer: Tensor, inner: Tensor) -> Tensor:
    """The map ``outer`` after ``inner``, both ``(N, D, D + 1)``."""
    linear = outer[..., :-1] @ inner[..., :-1]
    return torch.cat([linear, outer[..., :-1] @ inner[..., -1:] + outer[..., -1:]], dim=-1)
