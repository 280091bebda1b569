"""Points against the direction of a map."""

from typing import Any

import torch
from torch import Tensor

from regnet.spatial.affine import Affine
from regnet.spatial.composite import Composite
from regnet.spatial.grid import as_points
from regnet.spatial.transform import Transform

_STEP = 1e-2  # mm, of the difference quotients
_SHORTEST = 2.0**-8


def unmap_points(
    transform: Transform, world: Any, iterations: int = 60, tolerance: float = 1e-5, start: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Points of the moving image -> the matching points of the fixed image: where ``map_points`` gives ``world``.

    Each point is solved for, so nothing is lost to the grid of an inverse field; affine maps have their exact inverse.

    Args:
        transform: any, from fixed to moving.
        world: ``(N, D)``, RAS mm: a tensor, an array or lists.
        iterations: of Newton's method, at most, for each part that has no exact inverse.
        tolerance: the distance in mm at which a point is found.
        start: ``(N, D)``, RAS mm, points near the answer; None: as far the other way as the map goes.

    Returns:
        The points ``(N, D)``, RAS mm, float64; and how far from ``world`` each is mapped, ``(N,)``, mm: far above the
        tolerance where the map folds or does not reach.
    """
    world = as_points(world, transform.ndim)
    parts = transform.parts if isinstance(transform, Composite) else (transform,)
    begins: list[Tensor | None] = [None if start is None else start.to(torch.float64)]
    for part in parts[:-1]:
        begins.append(None if begins[-1] is None else part.map_points(begins[-1]))
    found = world
    for part, begin in zip(reversed(parts), reversed(begins), strict=True):
        if isinstance(part, Affine):
            found = part.inverse().map_points(found)
        else:
            found = _solve(
                part, found, 2 * found - part.map_points(found) if begin is None else begin, iterations, tolerance
            )
    return found, (transform.map_points(found) - world).norm(dim=-1)


def _solve(transform: Transform, world: Tensor, points: Tensor, iterations: int, tolerance: float) -> Tensor:
    """Newton's method with shorter steps where a full one leads away; points that have arrived leave the list."""
    result = points.clone()
    listed = torch.arange(len(points))
    error = transform.map_points(points) - world
    scale = torch.ones(len(world), 1, dtype=torch.float64)
    wide = 0.0 if transform.home is None else max(transform.home.spacing)
    for _ in range(iterations):
        going = error.norm(dim=-1) > tolerance
        if not going.any():
            break
        if not going.all():
            world, points, error, scale, listed = (values[going] for values in (world, points, error, scale, listed))
        # The exact slope holds on one side of a voxel's edge; one across the edge helps over it.
        before = error.norm(dim=-1)
        for width in (_STEP, wide):
            if not width:
                continue
            tried = points - scale * _step(transform, points, error, width)
            error_there = transform.map_points(tried) - world
            better = (error_there.norm(dim=-1) < error.norm(dim=-1))[:, None]
            points, error = torch.where(better, tried, points), torch.where(better, error_there, error)
        better = (error.norm(dim=-1) < before)[:, None]
        scale = torch.where(better, torch.ones_like(scale), (scale / 2).clamp(min=_SHORTEST))
        result[listed] = points
    return result


def _step(transform: Transform, points: Tensor, error: Tensor, width: float) -> Tensor:
    """Newton's step ``(N, D)``, with slopes by central differences of so many mm."""
    steps = width * torch.eye(points.shape[1], dtype=torch.float64)
    columns = [
        (transform.map_points(points + step) - transform.map_points(points - step)) / (2 * width) for step in steps
    ]
    jacobian = torch.stack(columns, dim=-1)
    jacobian[torch.linalg.det(jacobian).abs() < 1e-6] = torch.eye(points.shape[1], dtype=torch.float64)
    return torch.linalg.solve(jacobian, error[..., None])[..., 0]
