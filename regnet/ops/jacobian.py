"""The Jacobian of the map p + flow(p)."""

import torch
from torch import Tensor

from regnet.ops import _check


def jacobian(flow: Tensor) -> Tensor:
    """Derivative of the map ``p -> p + flow(p)``, identity included.

    Central differences, one-sided on the faces; along an axis of one voxel the flow counts as constant.

    Args:
        flow: ``(N, D, *spatial)``, voxels.

    Returns:
        ``(N, D, D, *spatial)``: entry ``[i, j]`` is the derivative of component ``i`` along spatial axis ``j``.

    Raises:
        ValueError: ``flow`` has not one channel per spatial axis.
    """
    ndim = _check.field("flow", flow)
    _, dtype = _check.together(flow=flow)
    columns = [_difference(flow.to(dtype), 2 + axis) for axis in range(ndim)]
    return (torch.stack(columns, 2) + unit(ndim, dtype, flow.device)).to(flow.dtype)


def jacobian_determinant(flow: Tensor) -> Tensor:
    """Local volume change of the map ``p -> p + flow(p)``, ``(N, 1, *spatial)``.

    The map goes from fixed to moving: below 1 means that the moving structure was enlarged to fit, above 1 that it was
    shrunk, 0 or below that the field folds. Differences as :func:`jacobian`.
    """
    ndim = _check.field("flow", flow)
    _, dtype = _check.together(flow=flow)
    u = flow.to(dtype)
    m = [[_difference(u[:, i], 1 + j) + (1.0 if i == j else 0.0) for j in range(ndim)] for i in range(ndim)]
    return determinant(m)[:, None].to(flow.dtype)


def unit(ndim: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The Jacobian of the identity at any voxel, ``(1, D, D, 1, ...)``."""
    return torch.eye(ndim, dtype=dtype, device=device).reshape(1, ndim, ndim, *[1] * ndim)


def determinant(m: list[list[Tensor]]) -> Tensor:
    """Of a matrix of up to three rows whose entries are tensors of one shape, elementwise."""
    if len(m) == 1:
        return m[0][0]
    if len(m) == 2:
        return m[0][0] * m[1][1] - m[0][1] * m[1][0]
    cofactors = [m[1][(j + 1) % 3] * m[2][(j + 2) % 3] - m[1][(j + 2) % 3] * m[2][(j + 1) % 3] for j in range(3)]
    return m[0][0] * cofactors[0] + m[0][1] * cofactors[1] + m[0][2] * cofactors[2]


def _difference(field: Tensor, dim: int) -> Tensor:
    size = field.shape[dim]
    if size < 2:
        return torch.zeros_like(field)
    forward = field.narrow(dim, 1, size - 1) - field.narrow(dim, 0, size - 1)
    inner = (forward.narrow(dim, 1, size - 2) + forward.narrow(dim, 0, size - 2)) / 2
    return torch.cat([forward.narrow(dim, 0, 1), inner, forward.narrow(dim, size - 2, 1)], dim)
