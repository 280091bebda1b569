"""How good the map of one pair is."""

import math
import warnings
from collections.abc import Mapping, Sequence
from statistics import fmean

import torch
from torch import Tensor

from regnet import metrics, ops
from regnet.data.foreground import background_of, foreground_of
from regnet.data.landmarks import read_landmarks
from regnet.data.reader import read_channels
from regnet.errors import InputError
from regnet.inference.case import Case, Protocol, read_label_map, read_map, read_mask
from regnet.inference.register import check_pair
from regnet.io import Image, check_image, read_transform
from regnet.losses import lncc
from regnet.report.measures import Measure, Measures
from regnet.spatial import Displacement, Grid, compose, matrix, unmap_points

_MISS = 1e-2  # mm by which a landmark may be missed on its way back


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
    there, volume = read_map(case.transforms, moving.grid, fixed)
    mask = read_mask(pair.fixed_mask, fixed)
    mask = foreground_of(fixed) if mask is None else mask
    found: Measures = {}
    for what in ("labels", "points"):
        there_are = [end for end in ("moving", "fixed") if getattr(pair, f"{end}_{what}") is not None]
        if len(there_are) == 1:
            warnings.warn(f"{pair.id}: has {there_are[0]}_{what} alone, so its {what} are not measured", stacklevel=2)
    if pair.moving_labels and pair.fixed_labels:
        ours, target = read_label_map(pair.moving_labels, moving), read_label_map(pair.fixed_labels, fixed)
        found |= _overlap(there, ours, target, protocol.labels)
    if pair.moving_points and pair.fixed_points:
        start = read_landmarks(pair.moving_points, moving.grid, protocol.space)
        found |= _points(there, start, read_landmarks(pair.fixed_points, fixed.grid, protocol.space))
    found |= _plain(_similarity(there, moving, fixed, mask, read_mask(pair.moving_mask, moving)))
    found |= _plain(_regularity(there, mask, volume))
    if case.inverse is not None:
        again = compose([there, read_transform(case.inverse, None, fixed.grid, moving.grid)], fixed.grid)
        length = metrics.displacement_statistics(again.flow[None], fixed.grid.spacing, mask)
        found |= _plain({"inverse_mean_mm": length["mean"], "inverse_max_mm": length["max"]})
    if pair.true_warp:
        truth = read_map([pair.true_warp], moving.grid, fixed)[0]
        error = metrics.endpoint_error(there.flow[None], truth.flow[None], fixed.grid.spacing, mask)
        found["epe_mean_mm"] = Measure(error)
    return found


def _plain(figures: Mapping[str, float]) -> Measures:
    return {name: Measure(value) for name, value in figures.items()}


def _overlap(there: Displacement, moving: Image, fixed: Image, mode: str) -> Measures:
    """Dice and surface distances of the labels that both images have, and their means."""
    moved = there.apply_labels(moving.data[None], moving.grid, mode="linear" if mode == "linear" else "nearest")
    if mode == "learn2reg":
        moved[_beyond_centres(there, moving.grid)] = 0
    one, two = moved[0, 0], fixed.data[0]
    labels = metrics.common_labels(fixed.data, moving.data)
    if not labels:
        warnings.warn(f"{moving.name} and {fixed.name}: have no label in common, so there is no overlap", stacklevel=2)
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
    there = Displacement(
        there.flow.double(), grid, there.outside
    )  # once, not at each of the many steps of the way back
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


def _regularity(there: Displacement, mask: Tensor, volume: float) -> dict[str, float]:
    """How far and how evenly the map moves things; ``volume``: how much of it is the affine part's."""
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
        "jacobian_p5": inside["p5"] / volume,
        "jacobian_p95": inside["p95"] / volume,
    }
