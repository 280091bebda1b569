"""How far a field moves things, and how far that is from the truth, in millimetres."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regnet import ops
from regnet.metrics._mask import inside, wide

Spacing = float | Sequence[float] | Tensor


def displacement_statistics(flow: Tensor, spacing: Spacing = 1.0, mask: Tensor | None = None) -> dict[str, float]:
    """Mean and largest length of the displacement.

    Args:
        flow: ``(N, D, *spatial)``, voxels.
        spacing: voxel size in mm; one, one per axis, or ``(N or 1, D)``.
        mask: ``(N or 1, 1, *spatial)``; voxels with a value above 0 count.

    Returns:
        ``mean`` and ``max``, mm; NaN if the mask is empty.

    Raises:
        ValueError: the shapes do not fit.
    """
    length = inside(_length(flow, spacing), mask)
    if length.numel() == 0:
        return {"mean": float("nan"), "max": float("nan")}
    return {"mean": float(length.double().mean()), "max": float(length.max())}


def endpoint_error(flow: Tensor, truth: Tensor, spacing: Spacing = 1.0, mask: Tensor | None = None) -> float:
    """Mean distance between where two fields take a voxel.

    Args:
        flow, truth: ``(N, D, *spatial)``, voxels, on one grid.
        spacing: voxel size in mm; one, one per axis, or ``(N or 1, D)``.
        mask: ``(N or 1, 1, *spatial)``; voxels with a value above 0 count.

    Returns:
        mm; NaN if the mask is empty.

    Raises:
        ValueError: the shapes do not fit.
    """
    if flow.shape != truth.shape:
        raise ValueError(f"fields must have one shape: got {tuple(flow.shape)} and {tuple(truth.shape)}")
    return float(inside(_length(wide(flow) - wide(truth), spacing), mask).double().mean())


def inverse_consistency_error(
    forward: Tensor, backward: Tensor, spacing: Spacing = 1.0, mask: Tensor | None = None
) -> dict[str, float]:
    """How far a voxel lands from where it was after going along one field and back along the other.

    Args:
        forward, backward: ``(N, D, *spatial)``, voxels, on one grid; the second should undo the first:
            ``forward(p) + backward(p + forward(p)) = 0``.
        spacing: voxel size in mm; one, one per axis, or ``(N or 1, D)``.
        mask: ``(N or 1, 1, *spatial)``; voxels with a value above 0 count.

    Returns:
        ``mean`` and ``max``, mm; NaN if the mask is empty.

    Raises:
        ValueError: the shapes do not fit.
    """
    if forward.shape != backward.shape:
        raise ValueError(f"fields must have one shape: got {tuple(forward.shape)} and {tuple(backward.shape)}")
    return displacement_statistics(ops.compose(wide(backward), wide(forward)), spacing, mask)


def _length(flow: Tensor, spacing: Spacing) -> Tensor:
    """Length of the vectors, ``(N, 1, *spatial)``, mm."""
    flow, ndim = wide(flow), flow.dim() - 2
    if ndim < 1 or flow.shape[1] != ndim:
        raise ValueError(f"flow must be (N, D, *spatial) with one channel per spatial axis: got {tuple(flow.shape)}")
    size = torch.as_tensor(spacing, dtype=flow.dtype, device=flow.device)
    size = size.expand(1, ndim) if size.dim() == 0 else size
    size = size[None] if size.dim() == 1 else size
    if size.shape not in ((1, ndim), (len(flow), ndim)) or not bool((size > 0).all()):
        raise ValueError(f"spacing must be positive, one, {ndim}, or (N, {ndim}) mm: got {spacing}")
    return (flow * size.view(*size.shape, *[1] * ndim)).square_().sum(1, keepdim=True).sqrt_()
