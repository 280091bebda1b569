"""How rough a field is: 0 is a translation, to the elastic energy also a small rotation, to the bending
energy any affine map.

Lengths are in mm: ``flow`` is in voxels, and ``voxel_size`` says how long those are.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from regnet.losses._analytic import attach, wants_gradient
from regnet.losses._differences import VoxelSize, check_voxel_size, least, mask_of_next, to_next
from regnet.losses._precision import full_precision
from regnet.losses._weights import check_field, weighted_mean

_POWERS = {"l1": 1, "l2": 2}


@full_precision
def diffusion(flow: Tensor, voxel_size: VoxelSize = 1.0, mask: Tensor | None = None, norm: str = "l2") -> Tensor:
    """Mean squared first derivative, Σ_ij (∂u_i / ∂x_j)², u and x in mm: no unit, so the same at any resolution.

    Forward differences. ``u = (2 x, 0)`` gives 4 in any number of dimensions and at any size. With the norm "l1" it is
    the mean of Σ_ij abs(∂u_i / ∂x_j), which gives 2 there and lets a field jump.

    Args:
        flow: ``(N, D, *spatial)``, voxels; a displacement or a velocity.
        voxel_size: mm; one, one per axis, or ``(N or 1, D)``. Only the ratios between axes matter.
        mask: weight of each voxel, >= 0, ``(N or 1, 1, *spatial)``; a difference has the least weight of its voxels.
            It is not differentiated, and hides what is not finite where it is 0.
        norm: "l2" or "l1".

    Returns:
        0-d, >= 0: the mean over samples of each derivative's mean over its differences, in float64 if ``flow`` is, else
        in float32; its gradient is exact, and differentiable no further.

    Raises:
        ValueError: ``flow`` has not one channel per spatial axis, ``voxel_size`` or ``mask`` does not fit, or an
            unknown norm.
    """
    if norm not in _POWERS:
        raise ValueError(f"norm must be one of {', '.join(_POWERS)}: got {norm!r}")
    return _mean_power(flow, [((axis,), 1.0) for axis in range(flow.dim() - 2)], voxel_size, mask, _POWERS[norm])


@full_precision
def bending_energy(flow: Tensor, voxel_size: VoxelSize = 1.0, mask: Tensor | None = None) -> Tensor:
    """Mean squared second derivative, Σ_ijk (∂²u_i / ∂x_j ∂x_k)², u and x in mm, in 1 / mm².

    Each mixed derivative counts twice, as the sum over j and k says. Second and crossed forward differences, exact for
    quadratic fields; an axis of fewer points than a difference needs adds nothing.

    Arguments, reduction and errors as of :func:`diffusion`.

    Source:
        Rueckert et al., IEEE Transactions on Medical Imaging 1999.
    """
    ndim = flow.dim() - 2
    pairs = [(j, k) for j in range(ndim) for k in range(j, ndim)]
    return _mean_power(flow, [(pair, 1.0 if pair[0] == pair[1] else 2.0) for pair in pairs], voxel_size, mask, 2)


@full_precision
def total_variation(
    flow: Tensor, voxel_size: VoxelSize = 1.0, mask: Tensor | None = None, smooth: float = 1e-3
) -> Tensor:
    """Mean length of the derivative, sqrt(Σ_ij (∂u_i / ∂x_j)² + smooth²) - smooth, u and x in mm: no unit.

    Forward differences, where every axis has a next voxel. It lets a field have edges, along any direction.

    Arguments, reduction and errors as of :func:`diffusion`; ``smooth`` > 0 rounds the tip off at 0.

    Source:
        Rudin, Osher and Fatemi, Physica D 1992.
    """
    flow, mask = check_field(flow, mask)
    square = _derivative(flow, voxel_size).square().sum((1, 2)).unsqueeze(1)
    if not smooth > 0:
        raise ValueError(f"smooth must be positive: got {smooth}")
    return weighted_mean(square / ((square + smooth**2).sqrt() + smooth), _next(mask, flow))


@full_precision
def elastic(
    flow: Tensor, voxel_size: VoxelSize = 1.0, mask: Tensor | None = None, mu: float = 1.0, lam: float = 0.0
) -> Tensor:
    """Linear elastic energy: mean of mu Σ_ij e_ij² + lam / 2 (Σ_i e_ii)², e = (∇u + ∇uᵀ) / 2, u and x in mm: no unit.

    Forward differences, where every axis has a next voxel. A small rotation costs nothing.

    Arguments, reduction and errors as of :func:`diffusion`; ``mu`` and ``lam`` are Lamé's parameters.

    Source:
        Christensen et al., IEEE Transactions on Image Processing 1996.
    """
    flow, mask = check_field(flow, mask)
    derivative = _derivative(flow, voxel_size)
    strain = (derivative + derivative.transpose(1, 2)) / 2
    volume = strain.diagonal(dim1=1, dim2=2).sum(-1)
    density = mu * strain.square().sum((1, 2)) + lam / 2 * volume.square()
    return weighted_mean(density.unsqueeze(1), _next(mask, flow))


def _derivative(flow: Tensor, voxel_size: VoxelSize) -> Tensor:
    """∂u_i / ∂x_j in mm per mm, ``(N, i, j, *spatial - 1)``."""
    size = check_voxel_size(voxel_size, flow)
    ratio = size[:, :, None] / size[:, None, :]
    return to_next(flow) * ratio.view(*ratio.shape, *[1] * (flow.dim() - 2))


def _next(mask: Tensor | None, flow: Tensor) -> Tensor | None:
    return None if mask is None else mask_of_next(mask.to(flow.dtype))


def _mean_power(
    flow: Tensor,
    terms: Sequence[tuple[tuple[int, ...], float]],
    voxel_size: VoxelSize,
    mask: Tensor | None,
    power: int,
) -> Tensor:
    """Σ weight · mean abs(difference along each of ``axes`` in turn) ** power over ``terms`` of (axes, weight)."""
    flow, mask = check_field(flow, mask)
    size = check_voxel_size(voxel_size, flow)
    wanted = wants_gradient(flow)
    with torch.no_grad():
        value = flow.new_zeros(())
        gradient = torch.zeros_like(flow) if wanted else None
        for axes, weight in terms:
            difference = flow
            for axis in axes:
                difference = difference.diff(dim=axis + 2)
            if difference.numel() == 0:
                continue
            per_channel = size / math.prod(size[:, axis : axis + 1] for axis in axes)
            scale = weight * per_channel.abs() ** power / len(flow)
            flat = difference.flatten(2)
            if mask is None:
                scale = scale / flat.shape[2]
                slope = flat
            else:
                share = least(mask, axes).to(flow.dtype).flatten(2)
                total = share.sum(2)
                scale = scale / torch.where(total > 0, total, 1)
                slope = flat * share
            if power == 1:
                slope = slope.sign() if mask is None else share * flat.sign()
            value += (scale * torch.einsum("ncs,ncs->nc", slope, flat)).sum()
            if gradient is not None:
                slope = slope.mul_(power * scale[..., None])
                _add_transposed(gradient, slope.view_as(difference), axes)
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
