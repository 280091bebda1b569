"""How rough a field is: 0 is a translation (diffusion) or an affine map (bending)."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from regnet.losses._analytic import attach, wants_gradient

VoxelSize = float | Sequence[float] | Tensor


def diffusion(flow: Tensor, voxel_size: VoxelSize = 1.0) -> Tensor:
    """Mean squared first derivative, Σ_ij (∂u_i / ∂x_j)², u and x in mm: no unit, so the same at any resolution.

    Forward differences. ``u = (2 x, 0)`` gives 4 in any number of dimensions and at any size.

    Args:
        flow: ``(N, D, *spatial)``, voxels; a displacement or a velocity.
        voxel_size: mm; one, one per axis, or ``(N or 1, D)``. Only the ratios between axes matter.

    Returns:
        0-d: the mean over voxels and samples, in float64 if ``flow`` is, else in float32; its gradient is exact, and
        differentiable no further.

    Raises:
        ValueError: ``flow`` has not one channel per spatial axis, or ``voxel_size`` does not fit.
    """
    return _mean_square(flow, [((axis,), 1.0) for axis in range(flow.dim() - 2)], voxel_size)


def bending_energy(flow: Tensor, voxel_size: VoxelSize = 1.0) -> Tensor:
    """Mean squared second derivative, Σ_ijk (∂²u_i / ∂x_j ∂x_k)², u and x in mm, in 1 / mm².

    Each mixed derivative counts twice, as the sum over j and k says. Second and crossed forward differences, exact for
    quadratic fields; an axis of fewer points than a difference needs adds nothing.

    Args:
        flow: ``(N, D, *spatial)``, voxels; a displacement or a velocity.
        voxel_size: mm; one, one per axis, or ``(N or 1, D)``.

    Returns:
        0-d: the mean over voxels and samples, in float64 if ``flow`` is, else in float32; its gradient is exact, and
        differentiable no further.

    Raises:
        ValueError: ``flow`` has not one channel per spatial axis, or ``voxel_size`` does not fit.

    Source:
        Rueckert et al., IEEE Transactions on Medical Imaging 1999.
    """
    ndim = flow.dim() - 2
    pairs = [(j, k) for j in range(ndim) for k in range(j, ndim)]
    return _mean_square(flow, [(pair, 1.0 if pair[0] == pair[1] else 2.0) for pair in pairs], voxel_size)


def _mean_square(flow: Tensor, terms: list[tuple[tuple[int, ...], float]], voxel_size: VoxelSize) -> Tensor:
    """Σ weight · mean (difference along each of ``axes`` in turn)² over ``terms`` of (axes, weight)."""
    if flow.dim() < 3 or flow.shape[1] != flow.dim() - 2:
        raise ValueError(f"flow must be (N, D, *spatial) with one channel per spatial axis: got {tuple(flow.shape)}")
    wanted = wants_gradient(flow)
    with torch.no_grad():
        field = flow if flow.dtype == torch.float64 else flow.float()
        size = _voxel_size(voxel_size, field)
        value = field.new_zeros(())
        gradient = torch.zeros_like(field) if wanted else None
        for axes, weight in terms:
            difference = field
            for axis in axes:
                difference = difference.diff(dim=axis + 2)
            if difference.numel() == 0:
                continue
            per_channel = size / math.prod(size[:, axis : axis + 1] for axis in axes)
            scale = weight * per_channel.square() / (len(field) * difference[0, 0].numel())
            flat = difference.flatten(2)
            value += (scale * torch.einsum("ncs,ncs->nc", flat, flat)).sum()
            if gradient is not None:
                flat *= 2 * scale[..., None]
                _add_transposed(gradient, flat.view_as(difference), axes)
    return attach(value, (flow, gradient))


def _add_transposed(total: Tensor, difference: Tensor, axes: tuple[int, ...]) -> None:
    """Add the transpose of taking differences along ``axes`` in turn, in place."""
    for axis in reversed(axes[1:]):
        shape = list(difference.shape)
        shape[axis + 2] += 1
        wider = difference.new_zeros(shape)
        _add_transposed(wider, difference, (axis,))
        difference = wider
    dim = axes[0] + 2
    total.narrow(dim, 1, difference.shape[dim]).add_(difference)
    total.narrow(dim, 0, difference.shape[dim]).sub_(difference)


def _voxel_size(voxel_size: VoxelSize, flow: Tensor) -> Tensor:
    """``(N or 1, D)``."""
    ndim = flow.shape[1]
    size = torch.as_tensor(voxel_size, dtype=flow.dtype, device=flow.device)
    if size.dim() == 0:
        size = size.expand(1, ndim)
    elif size.dim() == 1:
        size = size[None]
    if size.shape not in ((1, ndim), (len(flow), ndim)) or not bool((size > 0).all()):
        raise ValueError(f"voxel_size must be positive, one, {ndim}, or (N, {ndim}): got {voxel_size}")
    return size
