"""The inverse of a displacement field."""

import numbers
import warnings

import torch
from torch import Tensor

from regnet.ops import _check, _families
from regnet.ops._how import How
from regnet.ops.fields import identity
from regnet.ops.jacobian import determinant, jacobian, unit
from regnet.ops.options import Bound, Order
from regnet.ops.prefilter import prefilter


def invert(
    flow: Tensor, iterations: int = 50, tolerance: float = 1e-3, order: Order = 1, bound: Bound = "replicate"
) -> Tensor:
    """The inverse displacement on the same grid: ``v(p) = -flow(p + v(p))``.

    By Newton's method at every voxel, a step halved where it does not help; so large and steep fields are inverted
    too, as long as they do not fold. Two more steps are differentiable, which makes the first and second derivatives
    those of the inverse itself. Where to stop depends on the data: neither ``vmap`` nor
    ``torch.compile(fullgraph=True)`` can hold it.

    Args:
        flow: ``(N, D, *spatial)``, voxels.
        iterations: at most so many steps.
        tolerance: stop when ``|v(p) + flow(p + v(p))|`` is at most this everywhere, in voxels.
        order, bound: how ``flow`` is interpolated and continues outside the grid; order 1 or more. To check the
            result by :func:`regnet.ops.compose`, give that the same bound.

    Returns:
        ``(N, D, *spatial)``, voxels. A ``RuntimeWarning`` says where no inverse was found: there the field folds, or
        ``iterations`` were too few.

    Raises:
        ValueError: ``flow`` has not one channel per spatial axis, an order is 0, or ``iterations`` or ``tolerance`` is
            negative.
    """
    ndim = _check.field("flow", flow)
    _, dtype = _check.together(flow=flow)
    how = How.of(True, ndim, order, bound)
    if 0 in how.order:
        raise ValueError(f"a field of order 0 has no slope to invert; use order 1 or more on every axis, got {order!r}")
    _check.count("iterations", iterations)
    if not isinstance(tolerance, numbers.Real) or not tolerance >= 0:
        raise ValueError(f"tolerance must be a number of voxels, 0 or more, got {tolerance!r}")
    coeff = prefilter(flow.to(dtype), order, bound)
    differences = jacobian(flow.detach().to(dtype))
    with torch.no_grad():
        inverse, distance = _searched(coeff.detach(), differences, iterations, tolerance, how)
    found = distance <= tolerance**2
    if not found.all():
        warnings.warn(
            f"{1 - found.float().mean().item():.2%} of the voxels have no inverse within {tolerance:g} voxels "
            f"after {iterations} steps, the worst is {distance.max().sqrt().item():.3g} off: the field folds there",
            RuntimeWarning,
            stacklevel=2,
        )
    for _ in range(2):
        change = _solve(_slope(coeff, inverse, how), _missing(coeff, inverse, how))
        inverse = inverse - torch.where(found, change, torch.zeros_like(change))
    return inverse.to(flow.dtype)


def _searched(coeff: Tensor, differences: Tensor, iterations: int, tolerance: float, how: How) -> tuple[Tensor, Tensor]:
    """The best inverse that was found, and by how much it misses, squared: (N, D, *sp) and (N, 1, *sp)."""
    if not coeff.numel():
        return coeff, coeff[:, :1]
    pairs = zip(coeff.split(1), differences.split(1), strict=True)
    found = [_search(field, slopes, iterations, tolerance, how) for field, slopes in pairs]
    return torch.cat([inverse for inverse, _ in found]), torch.cat([distance for _, distance in found])


def _search(coeff: Tensor, differences: Tensor, iterations: int, tolerance: float, how: How) -> tuple[Tensor, Tensor]:
    """:func:`_searched` of one field. Voxels that are done wait no longer for the others: they leave the list."""
    ndim, shape = coeff.shape[1], coeff.shape[2:]
    there, smooth = how._replace(relative=False), How.of(False, ndim, 1, "replicate")
    home = identity(shape, dtype=coeff.dtype, device=coeff.device).reshape(1, ndim, *[1] * (ndim - 1), -1)
    inverse, distance = torch.empty_like(home), home.new_empty((1, 1, *home.shape[2:]))
    listed = torch.arange(home.shape[-1], device=home.device)
    back, gap = torch.zeros_like(home), _families.sample(coeff, home, None, 0, there)
    squared, step = gap.square().sum(1, keepdim=True), torch.ones_like(distance)
    for number in range(iterations + 1):
        inverse[..., listed], distance[..., listed] = back, squared
        going = (squared > tolerance**2).flatten()
        if number == iterations or not going.any():
            break
        if not going.all():
            home, back, gap, squared, step = (values[..., going] for values in (home, back, gap, squared, step))
            listed = listed[going]
        # The spline's slope holds on one side of a knot or border, differences see both, a plain step needs none.
        at = home + back
        slopes = (
            _slope(coeff, at, there),
            _families.sample(differences.flatten(1, 2), at, None, 0, smooth).unflatten(1, (ndim, ndim)),
            unit(ndim, coeff.dtype, coeff.device),
        )
        start, before, missing = back, squared, gap
        for slope in slopes:
            tried = start - step * _solve(slope, missing)
            left = tried + _families.sample(coeff, home + tried, None, 0, there)
            now = left.square().sum(1, keepdim=True)
            better = now < squared
            back, gap = torch.where(better, tried, back), torch.where(better, left, gap)
            squared = torch.where(better, now, squared)
        step = torch.where(squared < before, torch.ones_like(step), step / 2)
    return inverse.reshape(coeff.shape), distance.reshape(1, 1, *shape)


def _slope(coeff: Tensor, inverse: Tensor, how: How) -> Tensor:
    """(N, D, D, *sp): of the map p + flow(p), at p + inverse(p), or at the place itself where ``how`` says so."""
    return _families.sample(coeff, inverse, None, 1, how) + unit(coeff.shape[1], coeff.dtype, coeff.device)


def _missing(coeff: Tensor, inverse: Tensor, how: How) -> Tensor:
    """What is left of p after going to p + inverse(p) and back by the field."""
    return inverse + _families.sample(coeff, inverse, None, 0, how)


def _solve(matrix: Tensor, vector: Tensor) -> Tensor:
    """(N, D, D, *sp) \\ (N, D, *sp) by Cramer's rule; where the matrix is next to singular, the vector itself."""
    ndim = matrix.shape[1]
    rows = [list(row.unbind(1)) for row in matrix.unbind(1)]
    volume = determinant(rows)
    singular = volume.abs() < 1e-3
    volume = torch.where(singular, torch.ones_like(volume), volume)
    columns = []
    for j in range(ndim):
        replaced = [[vector[:, i] if k == j else rows[i][k] for k in range(ndim)] for i in range(ndim)]
        columns.append(torch.where(singular, vector[:, j], determinant(replaced) / volume))
    return torch.stack(columns, 1)
