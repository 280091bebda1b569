"""A pair of images at one resolution: samples of the fixed one, and what the moving one is there."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from regnet import ops
from regnet.data.normalise import normalise
from regnet.data.spec import InputSpec
from regnet.io.image import Image
from regnet.spatial.grid import Grid

Similarity = Callable[[Tensor, Tensor, Tensor], Tensor]

_FOREGROUND = 0.05
_MARGIN = 0.15  # of the foreground's extent, around it
_LEAST_OVERLAP = 0.3
_WHOLLY = 0.99


@dataclass(frozen=True)
class Layer:
    """An image and its mask in voxels of one size, on its own axes.

    Attributes:
        data: ``(1, C, *grid.shape)``, in [0, 1].
        weight: ``(1, 1, *grid.shape)``, 1 where the image counts.
        grid: where the voxels are.
    """

    data: Tensor
    weight: Tensor
    grid: Grid

    def coarser(self, spacing: float) -> "Layer":
        """Averaged to voxels of about ``spacing`` mm; an axis that is coarser already stays."""
        grid = _at_spacing(self.grid, spacing)
        if grid.shape == self.grid.shape:
            return self
        return Layer(_reduce(self.data, grid), _reduce(self.weight, grid), grid)


def layer(image: Image, mask: Image | None, spacing: float) -> Layer:
    """The finest layer of an image: averaged to about ``spacing`` mm, then normalised to [0, 1]."""
    grid = _at_spacing(image.grid, spacing)
    data, weight = _reduce(image.data[None], grid)[0], torch.ones(1, 1, *grid.shape)
    if mask is not None:
        # Only voxels that nothing outside the mask had a part in; and what does not count sets no range.
        weight = (_reduce((mask.data[None] > 0).to(torch.float32), grid) > _WHOLLY).to(torch.float32)
        counts = (weight[0] > 0).expand_as(data)
        data = data.masked_fill(~counts, float(data[counts].min()) if counts.any() else 0.0)
    data = normalise(data, InputSpec(ndim=grid.ndim, channels=data.shape[0]))
    return Layer(data[None], weight, grid)


@dataclass(frozen=True)
class Level:
    """Samples of the fixed image, and the moving one to compare with.

    Attributes:
        points: ``(n, D)``, RAS mm.
        values: ``(1, C, n)``, the fixed image there.
        weights: ``(n,)``, how much each counts.
        moving: ``(1, C + 1, *shape)``: the image, and its weight, which falls to 0 within a voxel beyond its view.
        grid: of ``moving``.
    """

    points: Tensor
    values: Tensor
    weights: Tensor
    moving: Tensor
    grid: Grid

    def similarity(self, maps: Tensor, measure: Similarity) -> Tensor:
        """How alike the images are under world maps ``(K, D + 1, D + 1)``, fixed -> moving: ``(K,)``.

        Less where hardly anything of the fixed image is in the moving one's view.
        """
        ndim = self.grid.ndim
        to_voxel = torch.linalg.solve(self.grid.affine, maps)
        coords = torch.einsum("kij,nj->kin", to_voxel[:, :-1, :-1], self.points) + to_voxel[:, :-1, -1:]
        coords = coords.reshape(len(maps), ndim, *(1,) * (ndim - 1), -1)
        seen = ops.pull(self.moving.expand(len(maps), *self.moving.shape[1:]), coords, bound="replicate")
        seen = seen.reshape(len(maps), self.moving.shape[1], -1)
        weight = self.weights * seen[:, -1]
        overlap = weight.sum(1) / self.weights.sum().clamp(min=1e-12)
        lack = (1 - overlap / _LEAST_OVERLAP).clamp(min=0)
        return measure(self.values, seen[:, :-1], weight) - lack


def level(fixed: Layer, moving: Layer, samples: int, generator: torch.Generator) -> Level:
    """Draw samples of the fixed image's foreground and a margin, one a voxel at most, each anywhere in its voxel."""
    inside = _samples(fixed, samples, generator)
    ndim = fixed.grid.ndim
    coords = inside.T.reshape(1, ndim, *(1,) * (ndim - 1), -1)
    both = torch.cat([fixed.data, fixed.weight], dim=1)
    values = ops.pull(both, coords, bound="replicate").reshape(both.shape[1], -1).to(torch.float64)
    # One voxel more on each side: the image goes on, its weight ends.
    ends = (1, 1) * ndim
    seen = torch.cat([pad(moving.data, ends, mode="replicate"), pad(moving.weight, ends)], dim=1)
    around = moving.grid.window((-1,) * ndim, [n + 2 for n in moving.grid.shape])
    return Level(fixed.grid.to_world(inside), values[None, :-1], values[-1], seen, around)


def _samples(layer: Layer, count: int, generator: torch.Generator) -> Tensor:
    """``(n, D)`` voxel coordinates, float64."""
    bright = (layer.data.amax(1) * layer.weight[:, 0])[0] > _FOREGROUND
    places = bright.nonzero() if bright.any() else (layer.weight[0, 0] > 0).nonzero()
    low, high = places.amin(0), places.amax(0) + 1
    margin = ((high - low) * _MARGIN).ceil().long()
    low = (low - margin).clamp(min=0)
    high = torch.minimum(high + margin, torch.tensor(layer.grid.shape))
    sizes = (high - low).tolist()
    total = math.prod(sizes)
    chosen = torch.randperm(total, generator=generator)[: min(count, total)].sort().values
    voxels = torch.stack(torch.unravel_index(chosen, sizes), dim=-1) + low
    return voxels + torch.rand(voxels.shape, generator=generator, dtype=torch.float64) - 0.5


def _at_spacing(grid: Grid, spacing: float) -> Grid:
    return grid.with_spacing([max(spacing, own) for own in grid.spacing])


def _reduce(data: Tensor, grid: Grid) -> Tensor:
    return ops.restrict(data.to(torch.float32), grid.shape, normalize=True)
