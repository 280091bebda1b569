"""The pair on one common grid, and what a deformation of it is worth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regnet import ops
from regnet.data.prepare import prepare, prepare_mask
from regnet.data.spec import InputSpec
from regnet.inference.refine.maps import Map
from regnet.inference.refine.memory import voxels_that_fit
from regnet.io.image import Image
from regnet.losses import Objective
from regnet.spatial.grid import Grid
from regnet.spatial.transform import Transform

# The finest level has at most this many voxels over the whole field of view: 1.4 mm for a head scanned at 1 mm.
_FINEST_VOXELS = 2_800_000
# What share of the steps each level gets, coarse to fine. Coarse steps cost an eighth and do most of the moving.
SHARES = (0.6, 0.4)
# A level is left out where an axis would have fewer voxels than this.
_SMALLEST_AXIS = 12
# A moved view above this was interpolated from voxels in view alone.
_IN_VIEW = 0.999


@dataclass(frozen=True)
class Pair:
    """Two images, their masks, and the map that stays under the optimised one."""

    moving: Image
    fixed: Image
    spec: InputSpec
    moving_mask: Image | None = None
    fixed_mask: Image | None = None
    start: Transform | None = None


@dataclass(frozen=True)
class Level:
    """``(1, C, *grid)`` images, the moving view appended to the moving image; ``start`` in voxels."""

    grid: Grid
    fixed: Tensor
    fixed_view: Tensor
    moving_and_view: Tensor
    start: Tensor | None

    @classmethod
    def of(cls, pair: Pair, spacing: float, device: torch.device | str) -> Level:
        """The pair at ``spacing`` mm."""
        spec = replace(pair.spec, spacing=spacing)
        target = prepare(pair.fixed, spec)
        source = prepare(pair.moving, spec, grid=target.grid)
        for prepared, mask in ((target, pair.fixed_mask), (source, pair.moving_mask)):
            if mask is not None:
                prepared.view.mul_(prepare_mask(mask, target.grid))
        start = None if pair.start is None else pair.start.on(target.grid).flow[None].to(target.data).to(device)
        return cls(
            target.grid,
            target.data.to(device),
            target.view.to(device),
            torch.cat([source.data, source.view.to(source.data)], dim=1).to(device),
            start,
        )

    def loss(self, fields: dict[str, Tensor], objective: Objective) -> Tensor:
        """Of the images moved by ``fields["displacement"]``, where both are in view."""
        flow = fields["displacement"]
        if self.start is not None:
            flow = ops.compose(self.start, flow, bound="replicate")
        moved = ops.warp(self.moving_and_view, flow, bound="replicate")
        # A voxel counts when all it was interpolated from was in view: a mixture with the background is no tissue.
        view = (moved[:, -1:].detach() > _IN_VIEW).to(moved.dtype)
        outputs = {**fields, "displacement": flow, "moved": moved[:, :-1], "moved_view": view}
        batch = {
            "fixed": self.fixed,
            "moving": self.moving_and_view[:, :-1],
            "fixed_mask": self.fixed_view,
            "spacing": flow.new_tensor([self.grid.spacing]),
        }
        total, _ = objective(outputs, batch)
        return total

    def closure(self, deformation: Map, numbers: Tensor, objective: Objective) -> Callable[[], Tensor]:
        """The loss of ``numbers``, to be called again and again."""
        return lambda: self.loss(deformation.fields(numbers), objective)


def schedule(grid: Grid, steps: int, channels: int = 1, device: torch.device | str = "cpu") -> list[tuple[float, int]]:
    """``(spacing in mm, steps)`` of each level, coarse to fine; the steps add up to ``steps``.

    The finest level is as fine as the image, as far as its voxels are few enough for time and for the memory there is.
    """
    extents = [n * s for n, s in zip(grid.shape, grid.spacing, strict=True)]
    voxels = min(_FINEST_VOXELS, voxels_that_fit(channels, grid.ndim, device))
    finest = max(min(grid.spacing), (math.prod(extents) / voxels) ** (1 / grid.ndim))
    spacings = [finest * 2**k for k in range(len(SHARES))]
    spacings = [s for s in spacings if s == finest or min(extents) / s >= _SMALLEST_AXIS][::-1]
    if len(spacings) == 1:
        return [(finest, steps)]
    coarse = round(SHARES[0] * steps)
    return [(s, n) for s, n in zip(spacings, (coarse, steps - coarse), strict=True) if n > 0]
