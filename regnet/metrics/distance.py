"""Distances between the surfaces of labels."""

from collections.abc import Sequence

import numpy as np
from scipy import ndimage
from torch import Tensor

from regnet.metrics.overlap import label_arrays

_Box = tuple[slice, ...]


def hd95(
    a: Tensor, b: Tensor, spacing: Sequence[float] | float = 1.0, labels: Sequence[int] | None = None
) -> dict[int, float]:
    """95 % Hausdorff distance of each label.

    The surface of a label is its voxels with a face neighbour outside of it (or of the grid). Every surface voxel of
    one map has a distance to the nearest of the other; the result is the larger of the two directions' 95th
    percentiles (linear between ranks).

    Args:
        a, b: integers, ``(*spatial)``, of one shape.
        spacing: voxel size in mm, one or one per axis.
        labels: which labels; None takes every one found in either, without 0.

    Returns:
        label -> mm; NaN where the label is missing from either map: its Dice of 0 tells.

    Raises:
        ValueError: the shapes differ, the labels are not integers, or ``spacing`` does not fit.
    """
    one, two = label_arrays(a, b)
    sizes = [float(spacing)] * one.ndim if isinstance(spacing, int | float) else [float(size) for size in spacing]
    if len(sizes) != one.ndim or min(sizes) <= 0:
        raise ValueError(f"spacing must be positive, one or {one.ndim} mm: got {spacing}")
    boxes_a, boxes_b = _boxes(one), _boxes(two)
    wanted = sorted(boxes_a.keys() | boxes_b.keys()) if labels is None else [int(label) for label in labels]
    result = {}
    for label in wanted:
        if label not in boxes_a or label not in boxes_b:
            result[label] = float("nan")
            continue
        box = tuple(
            slice(min(s.start, t.start), max(s.stop, t.stop))
            for s, t in zip(boxes_a[label], boxes_b[label], strict=True)
        )
        surface_a, surface_b = _surface(one[box] == label), _surface(two[box] == label)
        result[label] = max(_percentile(surface_a, surface_b, sizes), _percentile(surface_b, surface_a, sizes))
    return result


def _boxes(labels: np.ndarray) -> dict[int, _Box]:
    """label -> the smallest box that holds it."""
    values = np.unique(labels[labels != 0])
    if not values.size:
        return {}
    # Ranks, since find_objects makes room for every number up to the largest label.
    ranks = np.searchsorted(values, labels).clip(max=values.size - 1).astype(np.int32) + 1
    ranks[labels == 0] = 0
    return {int(value): box for value, box in zip(values, ndimage.find_objects(ranks), strict=True)}


def _surface(inside: np.ndarray) -> np.ndarray:
    """Voxels of ``inside`` with a face neighbour that is not; what lies beyond the array is not."""
    return inside & ~ndimage.binary_erosion(inside)


def _percentile(start: np.ndarray, end: np.ndarray, spacing: Sequence[float]) -> float:
    """95th percentile over ``start`` of the distance to ``end``."""
    distance = ndimage.distance_transform_edt(~end, sampling=spacing)
    return float(np.percentile(distance[start], 95))
