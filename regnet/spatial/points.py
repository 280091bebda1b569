"""Points against the direction of a map."""

import torch
from torch import Tensor

from regnet.spatial.affine import Affine
from regnet.spatial.composite import Composite
from regnet.spatial.transform import Transform

_STEP = 1e-2  # mm, of the difference quotients
_SHORTEST = 2.0**-8


def unmap_points(
    transform: Transform, world: Tensor, iterations: int = 60, tolerance: float = 1e-5
) -> tuple[Tensor, Tensor]:
    """Points of the moving image -> the matching points of the fixed image: where ``map_points`` gives ``world``.

    Each point is solved for, so nothing is lost to the grid of an inverse field; affine maps have their exact inverse.

    Args:
        transform: any, from fixed to moving.
        world: ``(N, D)``, RAS mm.
        iterations: of Newton's method, at most, for each part that has no exact inverse.
        tolerance: the distance in mm at which a point is found.

    Returns:
        The points ``(N, D)``, RAS mm, float64; and how far from ``world`` each is mapped, ``(N,)``, mm: far above the
        tolerance where the map folds or does not reach.
    """
    world = world.to(torch.float64)
    found = world
    for part in reversed(transform.parts if isinstance(transform, Composite) else (transform,)):
        if isinstance(part, Affine):
            found = part.inverse().map_points(found)
        else:
            found = _solve(part, found, iterations, tolerance)
    return found, (transform.map_points(found) - world).norm(dim=-1)


def _solve(transform: Transform, world: Tensor, iterations: int, tolerance: float) -> Tensor:
    """Newton's method with shorter steps where a full one leads away."""
    points = 2 * world - transform.map_points(world)
    error = transform.map_points(points) - world
    scale = torch.ones(len(world), 1, dtype=torch.float64)
    for _ in range(iterations):
        if not len(world) or float(error.norm(dim=-1).max()) <= tolerance:
            break
        jacobian = _jacobian(transform, points)
        flat = torch.linalg.det(jacobian).abs() < 1e-6
        jacobian[flat] = torch.eye(world.shape[1], dtype=torch.float64)
        step = torch.linalg.solve(jacobian, error[..., None])[..., 0]
        tried = points - scale * step
        error_there = transform.map_points(tried) - world
        better = (error_there.norm(dim=-1) < error.norm(dim=-1))[:, None]
        points, error = torch.where(better, tried, points), torch.where(better, error_there, error)
        scale = torch.where(better, torch.ones_like(scale), (scale / 2).clamp(min=_SHORTEST))
    return points


def _jacobian(transform: Transform, points: Tensor) -> Tensor:
    """Central differences, ``(N, D, D)``."""
    steps = _STEP * torch.eye(points.shape[1], dtype=torch.float64)
    columns = [
        (transform.map_points(points + step) - transform.map_points(points - step)) / (2 * _STEP) for step in steps
    ]
    return torch.stack(columns, dim=-1)
