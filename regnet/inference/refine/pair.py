"""Optimise the transform of one pair, from a network's answer or from nothing, coarse to fine."""

import torch
from torch import Tensor

from regnet.data.spec import InputSpec
from regnet.inference.refine.descent import Clock, Progress, descend
from regnet.inference.refine.level import SHARES, Level, Pair, schedule
from regnet.inference.refine.maps import MAPS, Map
from regnet.io.image import Image
from regnet.losses import LNCC, Diffusion, Objective
from regnet.spatial.composite import chain
from regnet.spatial.displacement import Displacement
from regnet.spatial.transform import Transform
from regnet.spatial.velocity import Velocity


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
    on: str = "velocity",
    objective: Objective | None = None,
    window: int = 5,
    smoothness: float = 0.5,
    learning_rate: float = 0.15,
    seconds: float | None = None,
    device: torch.device | str = "cpu",
    progress: Progress | None = None,
) -> Transform:
    """Optimise a deformation for one pair with Adam, coarse to fine; what comes back is never worse than the start.

    The map optimised is ``start`` after the deformation: ``x -> start(deformation(x))``. Voxels whose partner lies
    outside the moving image's field of view do not count in the similarity. A level ends when its steps are done, its
    share of the time is over, or nothing more is won; the best point that it saw goes on.

    Args:
        moving, fixed: the images, each on its own grid, of as many channels as ``spec`` says.
        spec: how they are prepared; its ``spacing`` is replaced by each level's.
        steps: optimiser steps over all levels, at most.
        velocity: a stationary velocity to start from, on any grid, in voxels of that grid per unit time; default: zero.
        start: a map (fixed -> moving) that stays as it is under the optimised one; default: the identity.
        moving_mask, fixed_mask: images on the same grids; what is 0 there does not count in the similarity.
        on: what is optimised: a "velocity" whose exponential is the deformation, invertible, on voxels 1.5 times the
            level's; or the "control" points of a cubic B-spline, one every three voxels. A ``velocity`` to start from
            then stays under them.
        objective: what is minimised, of any terms of ``regnet.losses`` that read the images or the field; default:
            LNCC of ``window`` plus ``smoothness`` times the diffusion of what is optimised.
        window: LNCC's, in voxels of the level.
        smoothness: weight of the diffusion: more is smoother.
        learning_rate: Adam's, in voxels of the lattice optimised.
        seconds: time that all levels may take, reading and preparing the images included; default: as long as it takes.
        device: where the optimisation runs; the result is on the CPU.
        progress: called after every step.

    Returns:
        The map, fixed -> moving: a ``Velocity`` or ``FFD`` on the grid of the last level, and ``start`` after it if
        there is one.

    Raises:
        ValueError: ``steps`` is less than 1, ``seconds`` not positive, ``on`` unknown, the loss is not finite at the
            start, or a term needs what there is not.
    """
    if steps < 1:
        raise ValueError(f"refinement needs at least 1 step, got {steps}")
    if on not in MAPS:
        raise ValueError(f"on must be one of {', '.join(MAPS)}, got {on!r}")
    clock = Clock.of(seconds)
    if velocity is not None and on == "control":
        start, velocity = Velocity(velocity.flow, velocity.grid) if start is None else start, None
    pair = Pair(moving, fixed, spec, moving_mask, fixed_mask, start)
    objective = objective or _default(on, window, smoothness)
    if pair.start is not None or on == "control":
        _refuse_reversed(objective)
    given: list[Transform] = [] if velocity is None else [velocity]
    # What is found is a sum of one part a level (and the velocity given), each kept on the lattice it was found on.
    parts, done = list(given), 0
    levels = schedule(fixed.grid, steps, spec.channels, device)
    for number, (spacing, count) in enumerate(levels):
        level = Level.of(pair, spacing, device)
        deformation = MAPS[on](level.grid)
        # Found on a coarser grid, a map may be worth less here than the one that all began with.
        numbers, parts = _better(level, deformation, objective, parts, given, device)
        initial = numbers.detach().clone()

        def report(step: int, loss: float, before: int = done) -> None:
            if progress is not None:
                progress(before + step, steps, loss)

        time = clock if number == len(levels) - 1 else clock.share(SHARES[0])
        descend([numbers], level.closure(deformation, numbers, objective), count, learning_rate, time, report)
        parts.append(deformation.part(numbers.detach() - initial))
        done += count
    found = deformation.transform(numbers.detach())
    return found if pair.start is None else chain([found, pair.start])


def _better(
    level: Level,
    deformation: Map,
    objective: Objective,
    parts: list[Transform],
    given: list[Transform],
    device: torch.device | str,
) -> tuple[Tensor, list[Transform]]:
    """Of the sum of all parts and that of the given ones: the one of less loss, as a leaf, and its parts."""
    choices = [(deformation.numbers(some).to(device), list(some)) for some in (parts, given)]
    if len(parts) > len(given):
        with torch.no_grad():
            losses = [float(level.loss(deformation.fields(numbers), objective)) for numbers, _ in choices]
        if losses[1] < losses[0]:
            choices.reverse()
    numbers, kept = choices[0]
    return numbers.requires_grad_(), kept


def _refuse_reversed(objective: Objective) -> None:
    for name, term in objective.terms.items():
        if getattr(term, "both_directions", False):
            raise ValueError(f"loss term {name!r} wants both directions: only a velocity from the identity knows both")


def _default(on: str, window: int, smoothness: float) -> Objective:
    smooth = Diffusion(weight=smoothness, on=on)
    return Objective({"similarity": LNCC(window=window), "smoothness": smooth})
