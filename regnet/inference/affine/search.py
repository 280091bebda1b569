"""Optimise world maps on one level: many at once from afar, or one to the end."""

import torch
from torch import Tensor

from regnet.inference.affine.level import Level, Similarity
from regnet.inference.affine.parameters import map_matrix

# L-BFGS: iterations at most, and a factor that makes its first step about a millimetre.
_ITERATIONS, _SCALE = 30, 1e4


def climb(
    here: Level, maps: Tensor, basis: Tensor, centre: Tensor, measure: Similarity, step: float, count: int
) -> Tensor:
    """Gradient ascent of several maps at once (Adam).

    Args:
        here: the level.
        maps: ``(K, D + 1, D + 1)``, fixed -> moving.
        basis, centre: as :func:`regnet.inference.affine.parameters.map_matrix` takes them.
        measure: of similarity.
        step: length of the first step, mm; the others fall linearly.
        count: of steps.

    Returns:
        ``(K, D + 1, D + 1)``.
    """
    parameters = torch.zeros(len(maps), len(basis), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([parameters])
    for done in range(count):
        optimizer.param_groups[0]["lr"] = step * (1 - done / count)
        loss = -here.similarity(map_matrix(parameters, maps, basis, centre), measure).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return map_matrix(parameters.detach(), maps, basis, centre)


def finish(here: Level, start: Tensor, basis: Tensor, centre: Tensor, measure: Similarity) -> Tensor:
    """L-BFGS from one map to the nearest best one, both ``(D + 1, D + 1)``; arguments as :func:`climb`."""
    parameters = torch.zeros(1, len(basis), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [parameters], max_iter=_ITERATIONS, tolerance_grad=1e-3, tolerance_change=1e-3, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = -_SCALE * here.similarity(map_matrix(parameters, start[None], basis, centre), measure)[0]
        value.backward()
        return value

    optimizer.step(loss)
    return map_matrix(parameters.detach(), start[None], basis, centre)[0]
