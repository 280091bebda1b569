"""Rigid and affine maps as a few numbers in millimetres, by the matrix exponential."""

import torch
from torch import Tensor

KINDS = ("rigid", "affine")


def generators(ndim: int, kind: str, radius: float) -> Tensor:
    """The directions in which a map may change, each scaled so that 1 moves a point at ``radius`` by about 1 mm.

    Args:
        ndim: 2 or 3.
        kind: ``"rigid"`` (turns and shifts) or ``"affine"`` (all linear maps and shifts).
        radius: of the object about the centre, mm.

    Returns:
        ``(P, ndim + 1, ndim + 1)``, float64: first the shifts, then the linear ones.

    Raises:
        ValueError: another kind.
    """
    if kind not in KINDS:
        raise ValueError(f"an affine map is one of {', '.join(KINDS)}, got {kind!r}")
    found = []
    for axis in range(ndim):
        shift = torch.zeros(ndim + 1, ndim + 1, dtype=torch.float64)
        shift[axis, -1] = 1.0
        found.append(shift)
    # Turns and stretches are orthogonal to each other, so that an affine search goes on where a rigid one ended.
    for row in range(ndim):
        for column in range(row + 1):
            for sign in (1.0, -1.0):
                if (sign > 0 and kind == "rigid") or (sign < 0 and row == column):
                    continue
                linear = torch.zeros(ndim + 1, ndim + 1, dtype=torch.float64)
                linear[row, column] += 1.0 / radius
                linear[column, row] = sign / radius
                found.append(linear)
    return torch.stack(found)


def map_matrix(parameters: Tensor, start: Tensor, basis: Tensor, centre: Tensor) -> Tensor:
    """The maps ``start @ exp(sum_i parameters_i basis_i)``, the exponential about a centre.

    Args:
        parameters: ``(K, P)``, mm.
        start: ``(K, D + 1, D + 1)``, world -> world.
        basis: :func:`generators`.
        centre: ``(D,)``, mm, in the space that ``start`` maps from.

    Returns:
        ``(K, D + 1, D + 1)``; differentiable in the parameters.
    """
    change = torch.linalg.matrix_exp(torch.einsum("kp,pij->kij", parameters, basis))
    return start @ shift_matrix(centre) @ change @ shift_matrix(-centre)


def shift_matrix(by: Tensor) -> Tensor:
    """``(D + 1, D + 1)``, float64: the shift by ``by`` ``(D,)``."""
    matrix = torch.eye(by.numel() + 1, dtype=torch.float64)
    matrix[:-1, -1] = by
    return matrix
