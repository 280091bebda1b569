"""Rigid or affine alignment of two images, coarse to fine, from several starts."""

import math
from functools import cached_property

import torch
from torch import Tensor

from regnet.inference.affine import starts
from regnet.inference.affine.level import Layer, Level, Similarity, layer, level
from regnet.inference.affine.parameters import KINDS, generators
from regnet.inference.affine.search import climb, finish
from regnet.inference.affine.similarity import correlation, mutual_information
from regnet.io.image import Image
from regnet.spatial.affine import Affine
from regnet.spatial.grid import Grid

SIMILARITIES: dict[str, Similarity] = {"mi": mutual_information, "ncc": correlation}

# The finest level has at most this many voxels over the whole field of view: 2 mm for a head.
_FINEST_VOXELS = 2_200_000
_LEVELS = 3
# A level is left out where an axis would have fewer voxels than this.
_SMALLEST_AXIS = 14
# Samples of the fixed image: on the coarsest level, between, and on the finest.
_SAMPLES = (4_000, 30_000, 120_000)
# Rounds on the coarsest level: steps from every start, and how many of the best go on.
_ROUNDS = ((8, 16), (16, 3))
# Another start than the headers must explain so much more: an object that looks alike when turned stays as it lies.
_CLEARLY = 1.05


class Aligner:
    """Two images on all levels, ready to be aligned.

    Args:
        moving, fixed: of one dimension and number of channels.
        moving_mask, fixed_mask: images on the same grids; what is 0 there does not count.
        similarity: ``"mi"``, normalised mutual information, for any contrasts; ``"ncc"``, correlation, for one.
        seed: of the samples that are drawn; the result depends on the images, the masks and this alone.

    Raises:
        ValueError: an unknown similarity.
    """

    def __init__(
        self,
        moving: Image,
        fixed: Image,
        moving_mask: Image | None = None,
        fixed_mask: Image | None = None,
        similarity: str = "mi",
        seed: int = 0,
    ) -> None:
        if similarity not in SIMILARITIES:
            raise ValueError(f"similarity must be one of {', '.join(SIMILARITIES)}, got {similarity!r}")
        self.measure = SIMILARITIES[similarity]
        self.seed = seed
        self.spacings = _spacings(fixed.grid)
        self.fixed = _layers(fixed, fixed_mask, self.spacings)
        self.moving = _layers(moving, moving_mask, self.spacings)
        self.centre, self.spread = starts.moments_of(self.fixed[0])
        self._poses: dict[bool, Tensor] = {}
        # Of a ball with this deviation in every direction.
        self.radius = max(math.sqrt(5 * float(self.spread.trace()) / fixed.grid.ndim), self.spacings[0])

    def align(self, kind: str = "affine", start: Affine | None = None) -> Affine:
        """Find the map that carries the moving image onto the fixed one.

        Args:
            kind: ``"centre"`` puts the middles of the fields of view together; ``"moments"`` the centres of mass,
                turned by the principal axes where that helps; ``"rigid"`` and ``"affine"`` search, coarse to fine.
            start: where a search begins; None: where the headers put the images, and, on the coarsest level, with the
                centres of mass together and turned in all directions.

        Returns:
            The map, fixed -> moving.

        Raises:
            ValueError: an unknown kind.
        """
        if kind == "centre":
            return Affine(self._together(starts.centre_of(self.fixed[0].grid), starts.centre_of(self.moving[0].grid)))
        if kind == "moments":
            return Affine(self.best(0, self._by_moments(), 1)[0])
        if kind not in KINDS:
            raise ValueError(f"an alignment is centre, moments, {' or '.join(KINDS)}: got {kind!r}")
        here = self.pose() if start is None else start.matrix
        for index in range(self.second, len(self.spacings)):
            here = self._finish(index, here, "rigid") if index == self.second else here
            here = self._finish(index, here, kind)
        return Affine(here)

    def pose(self, mirrored: bool = False) -> Tensor:
        """The best rigid map on the coarse levels, ``(D + 1, D + 1)``, from starts all around.

        Args:
            mirrored: seen in a mirror (the first axis about the fixed image's centre), to compare with.
        """
        if mirrored not in self._poses:
            self._poses[mirrored] = self._pose(mirrored)
        return self._poses[mirrored]

    def _pose(self, mirrored: bool) -> Tensor:
        upright = torch.eye(len(self.centre) + 1, dtype=torch.float64)
        middle = self._together(starts.centre_of(self.fixed[0].grid), starts.centre_of(self.moving[0].grid))
        turned = [starts.about(turn, self.centre, self._moments[0]) for turn in starts.even_turns(len(self.centre))]
        begin = torch.cat([torch.stack([upright, middle, *turned]), self._by_moments()[1:]])
        if mirrored:
            mirror = torch.eye(len(self.centre), dtype=torch.float64)
            mirror[0, 0] = -1
            begin = begin @ starts.about(mirror, self.centre, self.centre)
        maps, rigid = begin, self._basis("rigid")
        for steps, kept in _ROUNDS:
            climbed = climb(self.rough, maps, rigid, self.centre, self.measure, self.spacings[0], steps)
            maps = self.best(0, climbed, kept)
        # Where the headers put the images is followed without a climb, which wanders where an object looks alike.
        maps = torch.stack([self._finish(0, one, "rigid") for one in (begin[0], *maps)])
        pair = torch.stack([maps[0], self.best(0, maps, 1)[0]])
        if self._apart(*pair) < self.spacings[0]:
            return pair[1]
        pair = torch.stack([self._finish(self.second, one, "rigid") for one in pair])
        header, best = self.gains(pair)
        return pair[int(best > _CLEARLY * header)]

    def gains(self, maps: Tensor) -> list[float]:
        """How much one image tells about the other under each map, 0: nothing; on the second level."""
        nothing = 1.0 if self.measure is mutual_information else 0.0
        return [max(value - nothing, 0.0) for value in self.score(self.second, maps)]

    @property
    def second(self) -> int:
        """The level after the coarsest, if there is one."""
        return min(1, len(self.spacings) - 1)

    def score(self, index: int, maps: Tensor) -> list[float]:
        """Similarity on a level under each map."""
        with torch.no_grad():
            return self.levels[index].similarity(maps, self.measure).tolist()

    def best(self, index: int, maps: Tensor, count: int) -> Tensor:
        """The ``count`` most similar maps on a level, best first."""
        values = self.score(index, maps)
        return maps[sorted(range(len(maps)), key=lambda i: -values[i])[:count]]

    @cached_property
    def levels(self) -> list[Level]:
        """Samples and images, coarse to fine."""
        counts = {1: _SAMPLES[1:2], 2: _SAMPLES[::2], 3: _SAMPLES}[len(self.spacings)]
        return [
            level(fixed, moving, count, torch.Generator().manual_seed(self.seed))
            for fixed, moving, count in zip(self.fixed, self.moving, counts, strict=True)
        ]

    @cached_property
    def rough(self) -> Level:
        """The coarsest level with few samples, to climb from many starts: small images have no coarser one."""
        if len(self.spacings) > 1:
            return self.levels[0]
        return level(self.fixed[0], self.moving[0], _SAMPLES[0], torch.Generator().manual_seed(self.seed))

    @cached_property
    def _moments(self) -> tuple[Tensor, Tensor]:
        return starts.moments_of(self.moving[0])

    def _by_moments(self) -> Tensor:
        centre, spread = self._moments
        turns = [torch.eye(len(centre), dtype=torch.float64), *starts.principal_turns(self.spread, spread)]
        return torch.stack([starts.about(turn, self.centre, centre) for turn in turns])

    def _together(self, fixed: Tensor, moving: Tensor) -> Tensor:
        return starts.about(torch.eye(len(fixed), dtype=torch.float64), fixed, moving)

    def _apart(self, one: Tensor, other: Tensor) -> float:
        """The largest distance, mm, between where two maps take the ends of the object."""
        change = one - other
        return float((change[:-1, :-1] @ self.centre + change[:-1, -1]).norm()) + self.radius * float(
            torch.linalg.matrix_norm(change[:-1, :-1], 2)
        )

    def _basis(self, kind: str) -> Tensor:
        return generators(len(self.centre), kind, self.radius)

    def _finish(self, index: int, start: Tensor, kind: str) -> Tensor:
        return finish(self.levels[index], start, self._basis(kind), self.centre, self.measure)


def _layers(image: Image, mask: Image | None, spacings: list[float]) -> list[Layer]:
    """Coarse to fine."""
    layers = [layer(image, mask, spacings[-1])]
    for spacing in spacings[-2::-1]:
        layers.insert(0, layers[0].coarser(spacing))
    return layers


def _spacings(grid: Grid) -> list[float]:
    """Of the levels, mm, coarse to fine."""
    extents = [n * s for n, s in zip(grid.shape, grid.spacing, strict=True)]
    finest = max(min(grid.spacing), (math.prod(extents) / _FINEST_VOXELS) ** (1 / grid.ndim))
    spacings = [finest * 2**k for k in range(_LEVELS)]
    return [s for s in spacings if s == finest or min(extents) / s >= _SMALLEST_AXIS][::-1]
