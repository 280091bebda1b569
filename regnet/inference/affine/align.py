"""Rigid or affine alignment of two images, coarse to fine, from several starts."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from regnet.inference.affine import starts
from regnet.inference.affine.level import Layer, Level, Similarity, layer, level
from regnet.inference.affine.parameters import KINDS, generators, map_matrix
from regnet.inference.affine.similarity import correlation, mutual_information
from regnet.io.image import Image
from regnet.spatial.grid import Grid

SIMILARITIES: dict[str, Similarity] = {"mi": mutual_information, "ncc": correlation}

# The finest level has at most this many voxels over the whole field of view: 2 mm for a head.
_FINEST_VOXELS = 2_200_000
_LEVELS = 3
# A level is left out where an axis would have fewer voxels than this.
_SMALLEST_AXIS = 8
# Samples of the fixed image a level, coarse to fine.
_SAMPLES = (4_000, 30_000, 120_000)
# The many starts take this many steps of gradient ascent, of at first this many voxels; so many of them go on.
_EARLY_STEPS, _EARLY_RATE, _KEPT = 24, 1.0, 4
# L-BFGS: iterations a level, and a factor that makes its first step about a millimetre.
_ITERATIONS, _SCALE = 30, 1e4


def align(
    moving: Image,
    fixed: Image,
    kind: str = "affine",
    similarity: str = "mi",
    moving_mask: Image | None = None,
    fixed_mask: Image | None = None,
    seed: int = 0,
) -> Tensor:
    """Find the rigid or affine map that carries the moving image onto the fixed one.

    Turns about the centres of mass, from where the headers put the images and from all around, are tried on the
    coarsest level; the best go on to the finer ones. The result depends on the images, the masks and ``seed`` alone.

    Args:
        moving, fixed: the images, of one dimension and number of channels.
        kind: ``"rigid"`` or ``"affine"``; ``"centre"`` puts the middles of the fields of view together, ``"moments"``
            the centres of mass, turned by the principal axes where that helps.
        similarity: ``"mi"``, normalised mutual information, for any contrasts; ``"ncc"``, correlation, for one.
        moving_mask, fixed_mask: images on the same grids; what is 0 there does not count.
        seed: of the samples that are drawn.

    Returns:
        ``(D + 1, D + 1)``, float64, RAS mm of the fixed image -> RAS mm of the moving one.

    Raises:
        ValueError: an unknown kind or similarity.
    """
    if kind not in ("centre", "moments", *KINDS) or similarity not in SIMILARITIES:
        raise ValueError(
            f"an alignment is centre, moments, rigid or affine, by {' or '.join(SIMILARITIES)}: "
            f"got {kind!r}, {similarity!r}"
        )
    if kind == "centre":
        turn = torch.eye(fixed.grid.ndim, dtype=torch.float64)
        return starts.about(turn, starts.centre_of(fixed.grid), starts.centre_of(moving.grid))
    return _Search(moving, fixed, moving_mask, fixed_mask, SIMILARITIES[similarity], seed).run(kind)


class _Search:
    """The images on all levels, and where their middles are."""

    def __init__(
        self,
        moving: Image,
        fixed: Image,
        moving_mask: Image | None,
        fixed_mask: Image | None,
        measure: Similarity,
        seed: int,
    ) -> None:
        self.measure = measure
        self.seed = seed
        self.spacings = _spacings(fixed.grid)
        self.fixed = [layer(fixed, fixed_mask, self.spacings[-1])]
        self.moving = [layer(moving, moving_mask, self.spacings[-1])]
        for spacing in self.spacings[-2::-1]:
            self.fixed.insert(0, self.fixed[0].coarser(spacing))
            self.moving.insert(0, self.moving[0].coarser(spacing))
        self.centre, self.spread = starts.moments_of(self.fixed[0])
        # A ball of this deviation in every direction.
        self.radius = max(math.sqrt(5 * float(self.spread.trace()) / fixed.grid.ndim), self.spacings[0])

    def run(self, kind: str) -> Tensor:
        centre, spread = starts.moments_of(self.moving[0])
        first = self.level(0)
        upright = torch.eye(first.grid.ndim, dtype=torch.float64)
        principal = starts.principal_turns(self.spread, spread)
        if kind == "moments":
            turns = torch.cat([upright[None], principal])
            return self.best(first, torch.stack([starts.about(turn, self.centre, centre) for turn in turns]), 1)[0]
        middle = starts.about(upright, starts.centre_of(self.fixed[0].grid), starts.centre_of(self.moving[0].grid))
        turns = torch.cat([starts.even_turns(first.grid.ndim), principal])
        begin = [torch.eye(len(middle), dtype=torch.float64), middle]
        begin += [starts.about(turn, self.centre, centre) for turn in turns]
        maps = self.climb(first, torch.stack(begin), self.basis("rigid"))
        # Where the headers put the images is never left out by a coarse look alone.
        maps = torch.cat([maps[:1], self.best(first, maps, _KEPT)])
        for index in range(len(self.spacings)):
            here = self.level(index)
            if index <= 1:
                maps = torch.stack([self.finish(here, one, self.basis("rigid")) for one in maps])
                maps = self.best(here, maps, 1 if index == 1 or len(self.spacings) == 1 else len(maps))
            maps = self.finish(here, maps[0], self.basis(kind))[None] if index >= 1 or len(self.spacings) == 1 else maps
        return maps[0]

    def level(self, index: int) -> Level:
        generator = torch.Generator().manual_seed(self.seed)
        count = _SAMPLES[index - len(self.spacings)]
        return level(self.fixed[index], self.moving[index], count, generator)

    def basis(self, kind: str) -> Tensor:
        return generators(len(self.centre), kind, self.radius)

    def best(self, here: Level, maps: Tensor, count: int) -> Tensor:
        with torch.no_grad():
            order = here.similarity(maps, self.measure).argsort(descending=True, stable=True)
        return maps[order[:count]]

    def climb(self, here: Level, maps: Tensor, basis: Tensor) -> Tensor:
        """Gradient ascent of all maps at once, ``(K, D + 1, D + 1)``."""
        parameters = torch.zeros(len(maps), len(basis), dtype=torch.float64, requires_grad=True)
        rate = _EARLY_RATE * self.spacings[0]
        optimizer = torch.optim.Adam([parameters], lr=rate)
        for step in range(_EARLY_STEPS):
            optimizer.param_groups[0]["lr"] = rate * (1 - step / _EARLY_STEPS)
            loss = -here.similarity(map_matrix(parameters, maps, basis, self.centre), self.measure).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return map_matrix(parameters.detach(), maps, basis, self.centre)

    def finish(self, here: Level, start: Tensor, basis: Tensor) -> Tensor:
        """L-BFGS from one map, ``(D + 1, D + 1)``."""
        parameters = torch.zeros(1, len(basis), dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.LBFGS(
            [parameters], max_iter=_ITERATIONS, tolerance_grad=1e-3, tolerance_change=1e-3, line_search_fn="strong_wolfe"
        )

        def loss() -> Tensor:
            optimizer.zero_grad()
            value = -_SCALE * here.similarity(map_matrix(parameters, start[None], basis, self.centre), self.measure)[0]
            value.backward()
            return value

        optimizer.step(loss)
        return map_matrix(parameters.detach(), start[None], basis, self.centre)[0]


def _spacings(grid: Grid) -> list[float]:
    """Of the levels, mm, coarse to fine."""
    extents = [n * s for n, s in zip(grid.shape, grid.spacing, strict=True)]
    finest = max(min(grid.spacing), (math.prod(extents) / _FINEST_VOXELS) ** (1 / grid.ndim))
    spacings = [finest * 2**k for k in range(_LEVELS)]
    return [s for s in spacings if s == finest or min(extents) / s >= _SMALLEST_AXIS][::-1]
