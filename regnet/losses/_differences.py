"""Differences between neighbours, and lengths in mm."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regnet.losses._precision import as_float

VoxelSize = float | Sequence[float] | Tensor


def check_flow(flow: Tensor) -> Tensor:
    """``flow``, integers as float32; ValueError unless it is ``(N, D, *spatial)`` with one channel per spatial axis."""
    if flow.dim() < 3 or flow.shape[1] != flow.dim() - 2:
        raise ValueError(f"flow must be (N, D, *spatial) with one channel per spatial axis: got {tuple(flow.shape)}")
    if flow.numel() == 0:
        raise ValueError(f"flow must not be empty: got {tuple(flow.shape)}")
    return as_float(flow)


def check_voxel_size(voxel_size: VoxelSize, like: Tensor) -> Tensor:
    """``(N or 1, D)`` from mm given once, per axis, or per sample and axis, for ``like`` ``(N, C, *spatial)``."""
    ndim = like.dim() - 2
    size = torch.as_tensor(voxel_size, dtype=like.dtype, device=like.device)
    if size.dim() == 0:
        size = size.expand(1, ndim)
    elif size.dim() == 1:
        size = size[None]
    if size.shape not in ((1, ndim), (len(like), ndim)) or not bool((size > 0).all()):
        raise ValueError(f"voxel_size must be positive, one, {ndim}, or (N, {ndim}): got {voxel_size}")
    return size


def least(mask: Tensor, axes: Sequence[int]) -> Tensor:
    """Weight of each difference along ``axes`` in turn: the least of the voxels that it is made of."""
    for axis in axes:
        size = mask.shape[axis + 2] - 1
        mask = torch.minimum(mask.narrow(axis + 2, 0, size), mask.narrow(axis + 2, 1, size))
    return mask


def to_next(image: Tensor) -> Tensor:
    """Forward differences where every axis has a next voxel.

    Args:
        image: ``(N, C, *spatial)``.

    Returns:
        ``(N, C, D, *(spatial - 1))``, per voxel; an axis of size 1 keeps it, with difference 0.
    """
    ndim = image.dim() - 2
    sizes = [max(n - 1, 1) for n in image.shape[2:]]

    def part(along: int | None) -> Tensor:
        out = image
        for axis, size in enumerate(sizes):
            out = out.narrow(axis + 2, int(axis == along and image.shape[axis + 2] > 1), size)
        return out

    here = part(None)
    return torch.stack([part(axis) - here for axis in range(ndim)], dim=2)


def mask_of_next(mask: Tensor) -> Tensor:
    """Weight of each place of :func:`to_next`: the least of the voxels that its differences are made of."""
    weights = to_next(mask).amin(2).clamp(max=0)
    for axis, size in enumerate(weights.shape[2:]):
        mask = mask.narrow(axis + 2, 0, size)
    return mask + weights
