"""Where the search for an affine map begins."""

import itertools
import math

import torch
from torch import Tensor

from regnet.inference.affine.level import Layer
from regnet.inference.affine.parameters import shift_matrix
from regnet.spatial.grid import Grid


def centre_of(grid: Grid) -> Tensor:
    """The middle of a field of view, ``(D,)``, RAS mm."""
    return grid.to_world(torch.tensor([(n - 1) / 2 for n in grid.shape], dtype=torch.float64))


def moments_of(layer: Layer) -> tuple[Tensor, Tensor]:
    """Centre of mass ``(D,)`` and covariance ``(D, D)`` of what is bright, RAS mm and mm squared."""
    mass = (layer.data.mean(1, keepdim=True) * layer.weight)[0, 0].to(torch.float64)
    axes = [torch.arange(n, dtype=torch.float64) for n in layer.grid.shape]
    total = mass.sum()
    if total <= 0:
        return centre_of(layer.grid), torch.eye(layer.grid.ndim, dtype=torch.float64)
    voxels = torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1)
    points = layer.grid.to_world(voxels.reshape(-1, layer.grid.ndim))
    share = mass.reshape(-1, 1) / total
    centre = (share * points).sum(0)
    away = points - centre
    return centre, (share * away).T @ away


def about(turn: Tensor, fixed: Tensor, moving: Tensor) -> Tensor:
    """The map ``x -> turn (x - fixed) + moving``: ``(D + 1, D + 1)``."""
    matrix = torch.eye(len(fixed) + 1, dtype=torch.float64)
    matrix[:-1, :-1] = turn
    return shift_matrix(moving) @ matrix @ shift_matrix(-fixed)


def principal_turns(fixed: Tensor, moving: Tensor) -> Tensor:
    """The turns that carry the principal axes of one covariance onto those of the other: ``(2 ** (D - 1), D, D)``."""
    ours, theirs = torch.linalg.eigh(fixed)[1], torch.linalg.eigh(moving)[1]
    turns = []
    for signs in itertools.product((1.0, -1.0), repeat=len(fixed)):
        turn = theirs @ torch.diag(torch.tensor(signs, dtype=torch.float64)) @ ours.T
        if torch.linalg.det(turn) > 0:
            turns.append(turn)
    return torch.stack(turns)


def even_turns(ndim: int) -> Tensor:
    """Turns spread evenly, the identity first: 12 of 30 degrees in the plane, the 60 of the icosahedron in space.

    In space none is further than 44.5 degrees from every one of them.
    """
    if ndim == 2:
        angles = torch.arange(12, dtype=torch.float64) * (math.pi / 6)
        c, s = angles.cos(), angles.sin()
        return torch.stack([torch.stack([c, -s], -1), torch.stack([s, c], -1)], dim=-2)
    golden = (1 + math.sqrt(5)) / 2
    found = [torch.tensor([1.0, 0, 0, 0], dtype=torch.float64)]
    seeds = [(1.0, 0.0, 0.0, 0.0), (0.5, 0.5, 0.5, 0.5), (golden / 2, 0.5, 0.5 / golden, 0.0)]
    even = [p for p in itertools.permutations(range(4)) if _is_even(p)]
    for seed, order, signs in itertools.product(seeds, even, itertools.product((1.0, -1.0), repeat=4)):
        candidate = torch.tensor([seed[i] * signs[i] for i in order], dtype=torch.float64)
        # A unit quaternion and its negative are the same turn.
        if all(abs(float(candidate @ known)) < 0.99 for known in found):
            found.append(candidate)
    return torch.stack([_turn(*quaternion.tolist()) for quaternion in found])


def _is_even(order: tuple[int, ...]) -> bool:
    return sum(a > b for a, b in itertools.combinations(order, 2)) % 2 == 0


def _turn(w: float, x: float, y: float, z: float) -> Tensor:
    """The rotation of a unit quaternion."""
    cross = torch.tensor([[0, -z, y], [z, 0, -x], [-y, x, 0]], dtype=torch.float64)
    return torch.eye(3, dtype=torch.float64) + 2 * w * cross + 2 * cross @ cross
