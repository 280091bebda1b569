"""How good the map of one pair is."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import torch
from torch import Tensor

from regnet import metrics, ops
from regnet.data.datasets import read_channels
from regnet.data.foreground import background_of, foreground_of
from regnet.data.prepare import check_same_grid
from regnet.data.table import Pair
from regnet.errors import InputError
from regnet.inference.register import check_pair
from regnet.io import Image, check_image, read_image, read_labels, read_points, read_transform
from regnet.losses import lncc
from regnet.report.measures import Measure, Measures
from regnet.spatial import Displacement, Grid, compose, matrix, unmap_points

LABELS = ("nearest", "linear", "learn2reg")
SPACES = ("ras", "lps", "voxel", "voxel1")
LEARN2REG = "disp_"  # how the names of Learn2Reg's displacement files begin
_MISS = 1e-2  # mm by which a landmark may be missed on its way back


@dataclass(frozen=True)
class Case:
    """A pair and the files of its map.

    Attributes:
        pair: a row of the table.
        transform: the map fixed -> moving; None is the identity of the world.
        inverse: the map moving -> fixed, where there is one.
    """

    pair: Pair
    transform: Path | None
    inverse: Path | None = None

    def files(self) -> Iterator[Path]:
        """Every file that is read."""
        pair = self.pair
        alone = (pair.moving_labels, pair.fixed_labels, pair.moving_mask, pair.fixed_mask, pair.moving_points)
        rest = (pair.fixed_points, pair.true_warp, self.transform, self.inverse)
        yield from (path for path in (*pair.moving, *pair.fixed, *alone, *rest) if path is not None)


@dataclass(frozen=True)
class Protocol:
    """What is left to choose.

    Attributes:
        labels: how labels are warped. ``nearest``; ``linear``: the label that weighs most among the neighbours;
            ``learn2reg``: nearest, and 0 beyond the outer voxels' centres, which is half a voxel less than elsewhere.
        space: of the landmarks: ``ras``, ``lps`` (mm), ``voxel`` (from 0) or ``voxel1`` (from 1, as DIR-Lab counts);
            None: as their files say.
    """

    labels: str = "nearest"
    space: str | None = None


def evaluate(case: Case, protocol: Protocol | None = None) -> Measures:
    """Measure one pair.

    Args:
        case: its files.
        protocol: what is left to choose.

    Returns:
        What this pair has the files for; docs/metrics.md says what each figure is.

    Raises:
        InputError: a file cannot be used; the message names it.
    """
    protocol = protocol or Protocol()
    pair = case.pair
    fixed, moving = check_image(read_channels(pair.fixed)), check_image(read_channels(pair.moving))
    check_pair(moving, fixed)
    there = _map(case.transform, moving.grid, fixed)
    mask = _mask(pair.fixed_mask, fixed)
    mask = foreground_of(fixed) if mask is None else mask
    found: Measures = {}
    if pair.moving_labels and pair.fixed_labels:
        ours, target = _labels(pair.moving_labels, moving), _labels(pair.fixed_labels, fixed)
        found |= _overlap(there, ours, target, protocol.labels)
    if pair.moving_points and pair.fixed_points:
        points = _landmarks(pair.moving_points, moving, protocol), _landmarks(pair.fixed_points, fixed, protocol)
        found |= _points(there, *points)
    found |= _plain(_similarity(there, moving, fixed, mask, _mask(pair.moving_mask, moving)))
    found |= _plain(_regularity(there, mask))
    if case.inverse is not None:
        again = compose([there, read_transform(case.inverse, None, fixed.grid, moving.grid)], fixed.grid)
        error = metrics.displacement_statistics(again.flow[None], fixed.grid.spacing, mask)
        found |= _plain({"inverse_mean_mm": error["mean"], "inverse_max_mm": error["max"]})
    if pair.true_warp:
        truth = _map(pair.true_warp, moving.grid, fixed).flow[None]
        found["epe_mean_mm"] = Measure(metrics.endpoint_error(there.flow[None], truth, fixed.grid.spacing, mask))
    return found


def _map(path: Path | None, moving: Grid, fixed: Image) -> Displacement:
    """The map of a file at the voxels of the fixed image."""
    if path is None:
        return Displacement.identity(fixed.grid)
    source = "learn2reg" if path.name.startswith(LEARN2REG) else None
    transform = read_transform(path, source, moving, fixed.grid)
    if transform.ndim != fixed.grid.ndim:
        raise InputError(f"{path}: is {transform.ndim}-D, but {fixed.name} is {fixed.grid.ndim}-D")
    if isinstance(transform, Displacement) and transform.grid.matches(fixed.grid):
        return Displacement(transform.flow, fixed.grid)
    return transform.on(fixed.grid)


def _labels(path: Path, image: Image) -> Image:
    labels = read_labels(path)
    check_same_grid(labels, image.grid, image.name)
    return labels


def _mask(path: Path | None, image: Image) -> Tensor | None:
    """A mask on the voxels of its image, ``(1, 1, *spatial)``."""
    if path is None:
        return None
    mask = read_image(path)
    check_same_grid(mask, image.grid, image.name)
    return mask.data[None] > 0


def _landmarks(path: Path, image: Image, protocol: Protocol) -> Tensor:
    """Landmarks, ``(n, D)``, RAS mm."""
    points = read_points(path, "voxel" if protocol.space == "voxel1" else protocol.space)
    if protocol.space == "voxel1":
        points = type(points)(points.coordinates - 1, points.space, points.path)
    return points.world(image.grid.ndim, image.grid)


def _plain(figures: Mapping[str, float]) -> Measures:
    return {name: Measure(value) for name, value in figures.items()}


def _overlap(there: Displacement, moving: Image, fixed: Image, mode: str) -> Measures:
    """Dice and surface distances of the labels that both images have, and their means."""
    moved = there.apply_labels(moving.data[None], moving.grid, mode="linear" if mode == "linear" else "nearest")
    if mode == "learn2reg":
        moved[_beyond_centres(there, moving.grid)] = 0
    one, two = moved[0, 0], fixed.data[0]
    labels = metrics.common_labels(fixed.data, moving.data)
    spacing = fixed.grid.spacing
    voxels = metrics.surface_distances(one, two, 1.0, labels)
    if max(spacing) - min(spacing) < 1e-4 * min(spacing):  # distances are proportional then
        mm = {label: {k: v * fmean(spacing) for k, v in each.items()} for label, each in voxels.items()}
    else:
        mm = metrics.surface_distances(one, two, spacing, labels)
    return {
        "dice": _over_labels(metrics.dice(one, two, labels)),
        **{
            f"{name}_{unit}": _over_labels({label: each[name] for label, each in distances.items()})
            for name in ("hd95", "assd")
            for unit, distances in (("mm", mm), ("voxel", voxels))
        },
    }


def _beyond_centres(there: Displacement, source: Grid) -> Tensor:
    """Which voxels map beyond the centres of the outer voxels of the moving image, ``(1, 1, *spatial)``."""
    rows = matrix(there.grid, source)[0]
    at = ops.identity(there.grid.shape, dtype=torch.float64)[0] + there.flow
    beyond = torch.zeros(there.grid.shape, dtype=torch.bool)
    for row, size in zip(rows, source.shape, strict=True):
        coordinate = torch.tensordot(row[:-1], at, dims=1) + row[-1]
        beyond |= (coordinate < 0) | (coordinate > size - 1)
    return beyond[None, None]


def _over_labels(values: Mapping[int, float]) -> Measure:
    return Measure(_mean(list(values.values())), values)


def _mean(values: Sequence[float]) -> float:
    finite = [value for value in values if math.isfinite(value)]
    return fmean(finite) if finite else math.nan


def _points(there: Displacement, moving: Tensor, fixed: Tensor) -> Measures:
    """Landmark errors: fixed -> moving, the same by Learn2Reg's spline, and moving -> fixed."""
    if len(moving) != len(fixed):
        raise InputError(f"landmarks come in pairs: {len(moving)} of the moving and {len(fixed)} of the fixed image")
    grid = there.grid
    there = Displacement(there.flow.double(), grid)  # once, not at each of the many steps of the way back
    spline = grid.to_world(metrics.map_voxels(there.flow[None], grid.to_voxel(fixed), order=3))
    back, miss = unmap_points(there, moving)
    back[miss > _MISS] = math.nan  # the map folds there, or does not reach
    errors = {
        "tre_mm": metrics.target_registration_error(there.map_points(fixed), moving),
        "tre_mm_learn2reg": metrics.target_registration_error(spline, moving),
        "tre_mm_back": metrics.target_registration_error(back, fixed),
    }
    return {name: Measure(_mean(error.tolist()), points=error.tolist()) for name, error in errors.items()}


def _similarity(
    there: Displacement, moving: Image, fixed: Image, mask: Tensor, moving_mask: Tensor | None
) -> dict[str, float]:
    """LNCC on the part of the grid that the moving image (its mask) covers, NMI inside the fixed mask as well."""
    moved = there.apply(moving.data[None], moving.grid, background=background_of(moving))
    seen = torch.ones(1, 1, *moving.grid.shape, dtype=torch.uint8) if moving_mask is None else moving_mask.byte()
    view = there.apply_labels(seen, moving.grid) > 0
    target = fixed.data[None]
    return {
        "lncc": 1 - float(lncc(moved, target, mask=None if bool(view.all()) else view.float())),
        "nmi": metrics.normalised_mutual_information(moved[:, :1], target[:, :1], mask & view),
    }


def _regularity(there: Displacement, mask: Tensor) -> dict[str, float]:
    """How far and how evenly the map moves things."""
    flow = there.flow[None]
    length = metrics.displacement_statistics(flow, there.grid.spacing, mask)
    inside, everywhere = metrics.jacobian_statistics(flow, mask, None)
    return {
        "displacement_mean_mm": length["mean"],
        "displacement_max_mm": length["max"],
        "folding_percent": 100 * inside["folding"],
        "folding_percent_grid": 100 * everywhere["folding"],
        "ndv_percent": 100 * metrics.non_diffeomorphic_volume(flow, mask),
        "sdlogj": inside["sdlogj"],
        "sdlogj_grid": everywhere["sdlogj"],
        "sdlogj_learn2reg": everywhere["sdlogj_learn2reg"],
        "sdlogj_learn2reg_mask": inside["sdlogj_learn2reg"],
        "jacobian_p5": inside["p5"],
        "jacobian_p95": inside["p95"],
    }
