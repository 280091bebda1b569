"""Points along a chain of transforms, in either direction."""

import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from regnet.cli.chain import Link
from regnet.errors import InputError
from regnet.io import ImageFile, Points, write_points
from regnet.spatial import unmap_points

_FOUND = 1e-3  # mm


def apply_points(
    points: Points,
    chain: Sequence[Link],
    to: str,
    fixed: ImageFile | None,
    moving: ImageFile | None,
    out: Path,
) -> None:
    """Carry points along transforms and write them as they came.

    Args:
        points: of the fixed image where they go to the moving one, and the other way round.
        chain: in the order of ANTs: a point of the fixed image goes through the first, then the second.
        to: ``"moving"`` or ``"fixed"``.
        fixed, moving: whose voxels the points count, where they are in voxels.
        out: the file to write.

    Raises:
        InputError: transforms of other axes, points that lie in no plane along 2-D transforms, or points in voxels
            without both images.
    """
    ndim = _axes(points, chain, fixed or moving)
    here, there = (fixed, moving) if to == "moving" else (moving, fixed)
    if points.space == "voxel" and (here is None or there is None):
        raise InputError(f"{points.name}: points in voxels need --reference (fixed) and --moving, for their grids")
    world = points.world(ndim, here.grid if here is not None else None)
    lost = torch.zeros(len(world), dtype=torch.float64)
    for link in chain if to == "moving" else reversed(chain):
        assert link.forward is not None
        if link.is_inverse == (to == "moving"):
            world, missed = unmap_points(link.forward, world)
            lost = torch.maximum(lost, missed)
        else:
            world = link.forward.map_points(world)
    _tell(points, lost)
    write_points(out, points.moved(world, there.grid if there is not None else None))


def _axes(points: Points, chain: Sequence[Link], image: ImageFile | None) -> int:
    found = {link.word: link.forward.ndim for link in chain if link.forward is not None}
    if image is not None:
        found[image.name] = image.grid.ndim
    if len(set(found.values())) > 1:
        raise InputError(f"{', '.join(f'{name} is {n}-D' for name, n in found.items())}: they do not go together")
    ndim = next(iter(found.values()), points.coordinates.shape[1])
    beyond = points.coordinates[:, ndim:]
    if bool((beyond != beyond[:1]).any()):
        raise InputError(
            f"{points.name}: its third coordinates differ, so they lie in no plane, but {next(iter(found))} is 2-D"
        )
    return ndim


def _tell(points: Points, lost: Tensor) -> None:
    bad = (lost > _FOUND).nonzero().flatten().tolist()
    if bad:
        some = ", ".join(str(k + 1) for k in bad[:5]) + (", ..." if len(bad) > 5 else "")
        warnings.warn(
            f"{points.name}: {len(bad)} points have no place that is mapped to them, as where a field folds or ends "
            f"(number {some}); the nearest found is written, {float(lost.max()):.3g} mm off at most",
            stacklevel=2,
        )
