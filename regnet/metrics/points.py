"""Landmarks: how far mapped ones are from where they should be, and numbers of points along a field."""

import torch
from torch import Tensor

from regnet import ops


def target_registration_error(mapped: Tensor, truth: Tensor) -> Tensor:
    """Distance of every landmark to its counterpart.

    Args:
        mapped: ``(n, D)``, mm: the landmarks of the fixed image, carried into the moving image by the map itself; or
            those of the moving image, carried into the fixed one by its inverse.
        truth: ``(n, D)``, mm: where they are in that image, in the same order and the same axes.

    Returns:
        ``(n,)``, mm, float64.

    Raises:
        ValueError: the shapes differ.
    """
    if mapped.shape != truth.shape or mapped.dim() != 2:
        raise ValueError(f"landmarks must come in pairs, (n, D): got {tuple(mapped.shape)} and {tuple(truth.shape)}")
    return (mapped.double() - truth.double()).norm(dim=1)


def map_voxels(flow: Tensor, points: Tensor, order: int = 3) -> Tensor:
    """Carry points along a field.

    Args:
        flow: ``(1, D, *spatial)``, voxels.
        points: ``(n, D)``, voxels of the field's grid; they need not be whole.
        order: of the spline between the field's voxels. Learn2Reg takes 3, ITK 1. Beyond the grid the field goes on as
            at its edge (order 1) or is mirrored about it.

    Returns:
        ``(n, D)``, voxels, float64: ``p + flow(p)``.
    """
    _check(flow, points)
    bound = "replicate" if order < 2 else "dct1"
    return points.double() + _shift(ops.prefilter(flow, order, bound), points, order, bound)


def map_voxels_back(flow: Tensor, points: Tensor, iterations: int = 50, tolerance: float = 1e-4) -> Tensor:
    """Carry points against a field: where a point comes from that the field carries here.

    By Newton's method at the points alone; the field is linear between its voxels.

    Args:
        flow: ``(1, D, *spatial)``, voxels.
        points: ``(n, D)``, voxels of the field's grid.
        iterations: at most so many steps.
        tolerance: how near, in voxels, ``p + flow(p)`` must come.

    Returns:
        ``(n, D)``, voxels, float64: ``p`` with ``p + flow(p) = point``; NaN for a point without any found (where the
        field folds there may be none, or several, of which this is one).
    """
    _check(flow, points)
    goal = points.double()
    here = goal - _shift(flow, goal, 1, "replicate")
    for _ in range(iterations):
        miss = here + _shift(flow, here, 1, "replicate") - goal
        if bool((miss.norm(dim=1) <= tolerance).all()):
            break
        slope = _slope(flow, here)
        # Where the field folds its slope leads nowhere: a plain step then.
        steep = slope.det() > 0.05
        slope[~steep] = torch.eye(flow.shape[1], dtype=slope.dtype, device=slope.device)
        here = here - torch.linalg.solve(slope, miss)
    miss = here + _shift(flow, here, 1, "replicate") - goal
    return torch.where(miss.norm(dim=1, keepdim=True) <= tolerance, here, torch.nan)


def _check(flow: Tensor, points: Tensor) -> None:
    if points.dim() != 2 or points.shape[1] != flow.shape[1]:
        raise ValueError(
            f"points must be (n, {flow.shape[1]}) for a field of {flow.shape[1]} axes: got {tuple(points.shape)}"
        )


def _coordinates(points: Tensor) -> Tensor:
    """Points as the operators take them, ``(1, D, 1, ..., n)``."""
    ndim = points.shape[1]
    return points.double().T.reshape(1, ndim, *(1,) * (ndim - 1), -1)


def _shift(coeff: Tensor, points: Tensor, order: int, bound: str) -> Tensor:
    """The field at points, ``(n, D)``, float64."""
    return ops.pull(coeff, _coordinates(points), order, bound).reshape(coeff.shape[1], -1).T.double()


def _slope(flow: Tensor, points: Tensor) -> Tensor:
    """The Jacobian of the map at points, ``(n, D, D)``, float64."""
    ndim = flow.shape[1]
    slope = ops.grad(flow, _coordinates(points), 1, "replicate").reshape(ndim, ndim, -1).permute(2, 0, 1).double()
    return slope + torch.eye(ndim, dtype=slope.dtype, device=slope.device)
