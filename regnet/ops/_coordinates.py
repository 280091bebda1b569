"""Where samples are taken: at ``x = M (p + u) + t``, or ``p + u``, or ``u``.

The families differentiate in x; this carries their derivatives on to the coordinates u and the matrix (M, t), and back.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from regnet.ops._how import How


def _homogeneous(coords: Tensor, relative: bool) -> Tensor:
    """(N, D + 1, *sp): the coordinates that the matrix acts on, and ones; 0 for those that have no gradient anyway."""
    coords = coords.nan_to_num(0.0, 0.0, 0.0)
    if relative:
        axes = [torch.arange(n, dtype=coords.dtype, device=coords.device) for n in coords.shape[2:]]
        coords = coords + torch.stack(torch.meshgrid(*axes, indexing="ij"))
    return torch.cat([coords, torch.ones_like(coords[:, :1])], 1)


_SUM_BLOCK = 4096


def _apply(matrix: Tensor, field: Tensor) -> Tensor:
    """(N, I, J) @ (N, J, *sp), elementwise: a matmul would be cast to half precision under autocast."""
    first, *rest = (column.reshape(*column.shape, *[1] * (field.ndim - 2)) for column in matrix.unbind(2))
    out = first * field[:, :1]
    for j, column in enumerate(rest, 1):
        out = torch.addcmul(out, column, field[:, j : j + 1])
    return out


def _to_field(grad_x: Tensor, matrix: Tensor | None) -> Tensor:
    if matrix is None:
        return grad_x
    # An entry that is not finite takes every sample out of view, where 0 times it should stay 0.
    return _apply(matrix[:, :, :-1].mT.nan_to_num(0.0, 0.0, 0.0), grad_x)


def _to_matrix(grad_x: Tensor, coords: Tensor, relative: bool) -> Tensor:
    points = _homogeneous(coords, relative)
    rows = [torch.stack([_sum(g * p) for p in points.unbind(1)], 1) for g in grad_x.unbind(1)]
    return torch.stack(rows, 1)


def _sum(values: Tensor) -> Tensor:
    """(N, *sp) -> (N,), axis by axis: torch splits one long sum among its threads, many short ones it does not."""
    if values.ndim == 2:  # a line: in blocks
        padding = -values.shape[1] % _SUM_BLOCK
        values = torch.nn.functional.pad(values, (0, padding)).unflatten(1, (-1, _SUM_BLOCK))
    while values.ndim > 1:
        values = values.sum(-1)
    return values


def tangent(
    coords: Tensor, matrix: Tensor | None, dcoords: Tensor | None, dmatrix: Tensor | None, how: How
) -> Tensor | None:
    """The tangent of x."""
    check_orders(how, dcoords is not None or dmatrix is not None)
    dx = dcoords
    if matrix is not None and dcoords is not None:
        dx = _apply(matrix[:, :, :-1], dcoords)
    if dmatrix is not None:
        moved = _apply(dmatrix, _homogeneous(coords, how.relative))
        dx = moved if dx is None else dx + moved
    return dx


def check_orders(how: How, needed: bool) -> None:
    if needed and 0 in how.order:
        raise RuntimeError(
            "an interpolation of order 0 has no gradient in its coordinates: "
            "use order 1 or more on every axis, or detach them"
        )


def gradients(
    ctx: Any, grad_x: Callable[[], Tensor], coords: Tensor, matrix: Tensor | None, how: How, at: int
) -> tuple:
    """Gradients for (coords, matrix), which are inputs ``at`` and ``at + 1``."""
    need_coords, need_matrix = ctx.needs_input_grad[at], ctx.needs_input_grad[at + 1]
    if not (need_coords or need_matrix):
        return None, None
    check_orders(how, True)
    g = grad_x()
    return (
        _to_field(g, matrix) if need_coords else None,
        _to_matrix(g, coords, how.relative) if need_matrix else None,
    )
