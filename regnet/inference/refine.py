"""Instance optimisation: fit the transform of one pair by gradient descent, from a network's answer or from nothing."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regnet import ops
from regnet.data.prepare import prepare, prepare_mask
from regnet.data.spec import InputSpec
from regnet.io.image import Image
from regnet.losses import diffusion, lncc
from regnet.spatial.composite import chain
from regnet.spatial.displacement import Displacement
from regnet.spatial.grid import Grid
from regnet.spatial.transform import Transform
from regnet.spatial.velocity import Velocity

Progress = Callable[[int, int, float], None]
"""Called after every step with the steps done, the steps in all and the loss."""

# The finest level has at most this many voxels over the whole field of view: 2 mm for a head scanned at 1 mm.
_FINEST_VOXELS = 1_100_000
# What share of the steps each level gets, coarse to fine. Coarse steps cost an eighth and do most of the moving.
_SHARES = (0.6, 0.4)
# A level is left out where an axis would have fewer voxels than this.
_SMALLEST_AXIS = 12
# A moved view above this was interpolated from voxels in view alone.
_IN_VIEW = 0.999
# The last exponential is taken with this many squarings more than the optimiser's: it is done once.
_EXTRA_SQUARINGS = 2


def refine(
    moving: Image,
    fixed: Image,
    spec: InputSpec,
    steps: int,
    velocity: Displacement | None = None,
    start: Transform | None = None,
    *,
    moving_mask: Image | None = None,
    fixed_mask: Image | None = None,
    learning_rate: float = 0.1,
    window: int = 5,
    smoothness: float = 0.5,
    squarings: int = 5,
    device: torch.device | str = "cpu",
    progress: Progress | None = None,
) -> Transform:
    """Optimise a stationary velocity field for one pair: Adam, coarse to fine, LNCC and diffusion.

    The map optimised is ``start`` after ``exp(velocity)``: ``x -> start(exp(velocity)(x))``. Voxels whose partner lies
    outside the moving image's field of view do not count in the similarity.

    Args:
        moving, fixed: the images, each on its own grid.
        spec: how they are prepared; its ``spacing`` is replaced by each level's.
        steps: optimiser steps over all levels.
        velocity: where the velocity starts, on any grid, in voxels of that grid per unit time; default: zero.
        start: a map (fixed -> moving) that stays as it is under the optimised one; default: the identity.
        moving_mask, fixed_mask: images on the same grids; what is 0 there does not count in the similarity.
        learning_rate: Adam's, in voxels of the level.
        window: LNCC window in voxels of the level.
        smoothness: weight of the velocity's diffusion.
        squarings: of the exponential, while optimising.
        device: where the optimisation runs; the result is on the CPU.
        progress: called after every step.

    Returns:
        The map, fixed -> moving: a velocity on the grid of the last level, and ``start`` after it if there is one.

    Raises:
        ValueError: ``steps`` is less than 1, or the loss is no longer finite.
    """
    if steps < 1:
        raise ValueError(f"refinement needs at least 1 step, got {steps}")
    done = 0
    # The velocity is a sum of one part a level (and the start), each kept on the grid it was found on.
    parts = [] if velocity is None else [velocity]
    for spacing, count in _schedule(fixed.grid, steps):
        level = _level(moving, fixed, replace(spec, spacing=spacing), start, moving_mask, fixed_mask, device)
        initial = level.fixed.new_zeros((1, level.grid.ndim, *level.grid.shape))
        for part in parts:
            initial += part.on(level.grid).flow.to(initial)
        value = initial.clone().requires_grad_(True)
        optimizer = torch.optim.Adam([value], lr=learning_rate)
        for _ in range(count):
            loss = level.dissimilarity(value, squarings, window) + smoothness * diffusion(value)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            done += 1
            number = loss.item()
            if not math.isfinite(number):
                raise ValueError(
                    f"refinement diverged: the loss is {number} after {done} steps; lower the learning rate"
                )
            if progress is not None:
                progress(done, steps, number)
        parts.append(Displacement((value.detach() - initial)[0].cpu(), level.grid))
    found = Velocity(value.detach()[0].cpu(), level.grid, squarings + _EXTRA_SQUARINGS)
    return found if start is None else chain([found, start])


@dataclass(frozen=True)
class _Level:
    """The pair on one common grid: ``(1, C, *grid)`` images, the moving view appended to the moving image."""

    grid: Grid
    fixed: Tensor
    fixed_view: Tensor
    moving_and_view: Tensor
    start: Tensor | None

    def displacement(self, velocity: Tensor, squarings: int) -> Tensor:
        """``(1, D, *grid)`` voxels: the total map's displacement."""
        flow = ops.integrate(velocity, steps=squarings, bound="replicate")
        return flow if self.start is None else ops.compose(self.start, flow, bound="replicate")

    def dissimilarity(self, velocity: Tensor, squarings: int, window: int) -> Tensor:
        """LNCC loss of the moved and the fixed image, where both are in view."""
        flow = self.displacement(velocity, squarings)
        moved = ops.warp(self.moving_and_view, flow, bound="replicate")
        # A voxel counts when all it was interpolated from was in view: a mixture with the background is no tissue.
        view = (moved[:, -1:].detach() > _IN_VIEW) * self.fixed_view
        return lncc(moved[:, :-1], self.fixed, window=window, mask=view)


def _level(
    moving: Image,
    fixed: Image,
    spec: InputSpec,
    start: Transform | None,
    moving_mask: Image | None,
    fixed_mask: Image | None,
    device: torch.device | str,
) -> _Level:
    target = prepare(fixed, spec)
    source = prepare(moving, spec, grid=target.grid)
    for prepared, mask in ((target, fixed_mask), (source, moving_mask)):
        if mask is not None:
            prepared.view.mul_(prepare_mask(mask, target.grid))
    return _Level(
        target.grid,
        target.data.to(device),
        target.view.to(device),
        torch.cat([source.data, source.view.to(source.data)], dim=1).to(device),
        None if start is None else start.on(target.grid).flow[None].to(target.data).to(device),
    )


def _schedule(grid: Grid, steps: int) -> list[tuple[float, int]]:
    """``(spacing in mm, steps)`` of each level, coarse to fine; the steps add up to ``steps``."""
    extents = [n * s for n, s in zip(grid.shape, grid.spacing, strict=True)]
    finest = max(min(grid.spacing), (math.prod(extents) / _FINEST_VOXELS) ** (1 / grid.ndim))
    spacings = [finest * 2**k for k in range(len(_SHARES))]
    spacings = [s for s in spacings if s == finest or min(extents) / s >= _SMALLEST_AXIS][::-1]
    if len(spacings) == 1:
        return [(finest, steps)]
    coarse = round(_SHARES[0] * steps)
    return [(s, n) for s, n in zip(spacings, (coarse, steps - coarse), strict=True) if n > 0]
