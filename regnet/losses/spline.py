"""How rough a free-form deformation is, exactly, from its control points alone."""

import functools
import itertools
import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from regnet import ops
from regnet.losses._differences import VoxelSize, check_flow, check_voxel_size
from regnet.losses._precision import full_precision


@full_precision
def spline_diffusion(
    control: Tensor, shape: Sequence[int], spacing: float | Sequence[float], voxel_size: VoxelSize = 1.0
) -> Tensor:
    """Mean of Σ_ij (∂u_i / ∂x_j)² of a cubic B-spline field u, u and x in mm: no unit.

    The integral, not a sum over voxels: :func:`regnet.losses.diffusion` of the dense field comes near it as voxels get
    small, at some hundred times the cost.

    Args:
        control: ``(N, D, *points)``, voxels: u as :func:`regnet.ops.ffd` makes it.
        shape: of the dense field; the mean is over the box that its voxel centres span.
        spacing: voxels between control points, one or one per axis.
        voxel_size: mm; one, one per axis, or ``(N or 1, D)``.

    Returns:
        0-d, >= 0: the mean over samples.

    Raises:
        ValueError: as :func:`regnet.ops.ffd`, or ``voxel_size`` does not fit.
    """
    return _energy(control, shape, spacing, voxel_size, degree=1)


@full_precision
def spline_bending_energy(
    control: Tensor, shape: Sequence[int], spacing: float | Sequence[float], voxel_size: VoxelSize = 1.0
) -> Tensor:
    """Mean of Σ_ijk (∂²u_i / ∂x_j ∂x_k)² of a cubic B-spline field u, u and x in mm, in 1 / mm².

    Arguments, reduction and errors as of :func:`spline_diffusion`.

    Source:
        Shackleford et al., MICCAI 2012, found the integral from the control points; here by Gauss's quadrature, which
        is exact for polynomials.
    """
    return _energy(control, shape, spacing, voxel_size, degree=2)


def _energy(
    control: Tensor, shape: Sequence[int], spacing: float | Sequence[float], voxel_size: VoxelSize, degree: int
) -> Tensor:
    """A quadratic form in the control points, whose matrix is a product of one small matrix per axis."""
    control = check_flow(control)
    ndim = control.shape[1]
    steps = tuple(np.asarray(spacing, dtype=float).ravel().tolist()) * (ndim if np.ndim(spacing) == 0 else 1)
    if len(shape) != ndim or len(steps) != ndim or min(shape) < 1 or not min(steps) > 0:
        raise ValueError(f"shape and spacing must be positive, for {ndim} axes: got {tuple(shape)} and {spacing}")
    for have, n, s in zip(control.shape[2:], shape, steps, strict=True):
        if have < int((n - 1) / s) + 4:
            raise ValueError(f"{n} voxels at spacing {s:g} need {int((n - 1) / s) + 4} control points: got {have}")
    size = check_voxel_size(voxel_size, control)
    total = control.new_zeros(())
    for axes in itertools.combinations_with_replacement(range(ndim), degree):
        product = control
        for axis, (points, n, s) in enumerate(zip(control.shape[2:], shape, steps, strict=True)):
            gram = _gram(points, n, s, axes.count(axis)).to(control)
            product = torch.tensordot(product, gram, dims=([axis + 2], [0])).movedim(-1, axis + 2)
        lengths = size / math.prod(size[:, axis : axis + 1] for axis in axes)
        energy = (product * control).flatten(2).sum(2)
        total = total + len(set(axes)) * (lengths.square() * energy).sum() / len(control)
    return total


@functools.lru_cache(maxsize=64)
def _gram(points: int, voxels: int, spacing: float, degree: int) -> Tensor:
    """Mean over x in [0, voxels - 1] of b_k^(degree)(x) b_l^(degree)(x), ``(points, points)``, float64, per voxel.

    Each piece between knots is a polynomial of degree 6 at most, for which 4 Gauss points are exact. A single voxel
    spans no length: there, the values themselves, and no derivative.
    """
    length = voxels - 1
    if length == 0 and degree:
        return torch.zeros(points, points, dtype=torch.float64)
    knots = np.append(np.arange(0, length / spacing) * spacing, length)
    nodes, weights = np.polynomial.legendre.leggauss(4)
    half = np.diff(knots)[:, None] / 2
    x = torch.from_numpy(((knots[:-1, None] + half) + half * nodes).ravel() if length else np.zeros(1))
    share = torch.from_numpy((half * weights).ravel() / length if length else np.ones(1))
    sample = (ops.pull, ops.grad, ops.hess)[degree]
    unit = torch.eye(points, dtype=torch.float64)[None]
    basis = sample(unit, (x / spacing + 1)[None, None], order=3, bound="zero").reshape(points, -1) / spacing**degree
    return basis * share @ basis.T
