"""Distances between the surfaces of labels."""

from collections.abc import Sequence

import numpy as np
import torch
from scipy.spatial import KDTree
from torch import Tensor

from regnet.metrics._cell import CORNERS, areas
from regnet.metrics._labels import Box, boxes, chosen, label_arrays

Spacing = float | Sequence[float]

_ALL = 255  # every corner of a cell is inside


def hd95(a: Tensor, b: Tensor, spacing: Spacing = 1.0, labels: Sequence[int] | None = None) -> dict[int, float]:
    """95 % Hausdorff distance of each label, as Learn2Reg computes it.

    The surface runs through the cells between voxel centres that have corners inside and outside; what lies beyond the
    grid is outside. Each cell stands for the area of surface in it (marching cubes) and has a distance to the nearest
    surface cell of the other map. The result is the larger, over the two directions, of the distance that 95 % of the
    area stays within.

    Args:
        a, b: integers, ``(*spatial)``, 2-D or 3-D, of one shape.
        spacing: voxel size in mm, one or one per axis. 1 gives voxels, Learn2Reg's figure.
        labels: which labels; None takes every one found in either, without 0.

    Returns:
        label -> mm; NaN where the label is missing from either map: its Dice of 0 tells. (Learn2Reg has infinity there
        when the warped map lost it.)

    Raises:
        ValueError: the shapes differ, the labels are not integers, or ``spacing`` does not fit.

    Source:
        Nikolov et al., arXiv 1809.04430; https://github.com/MDL-UzL/L2R
    """
    return {label: figures["hd95"] for label, figures in surface_distances(a, b, spacing, labels).items()}


def average_surface_distance(
    a: Tensor, b: Tensor, spacing: Spacing = 1.0, labels: Sequence[int] | None = None
) -> dict[int, float]:
    """Mean distance of each label's two surfaces to each other: both directions together, weighted by area.

    Arguments, errors and NaN as :func:`hd95`.

    Returns:
        label -> mm.
    """
    return {label: figures["assd"] for label, figures in surface_distances(a, b, spacing, labels).items()}


def surface_distances(
    a: Tensor, b: Tensor, spacing: Spacing = 1.0, labels: Sequence[int] | None = None
) -> dict[int, dict[str, float]]:
    """:func:`hd95` and :func:`average_surface_distance` (``assd``) of each label, from one search."""
    one, two = label_arrays(a, b)
    sizes = np.atleast_1d(np.asarray(spacing, dtype=float))
    sizes = np.repeat(sizes, one.ndim) if np.ndim(spacing) == 0 else sizes
    if one.ndim not in (2, 3):
        raise ValueError(f"label maps must be 2-D or 3-D: got shape {one.shape}")
    if sizes.shape != (one.ndim,) or not (sizes > 0).all():
        raise ValueError(f"spacing must be positive, one or {one.ndim} mm: got {spacing}")
    boxes_a, boxes_b = boxes(one), boxes(two)
    result = {}
    for label in chosen(labels, boxes_a, boxes_b):
        if label not in boxes_a or label not in boxes_b:
            result[label] = {"hd95": float("nan"), "assd": float("nan")}
            continue
        result[label] = _compare(
            _Surface(one, label, boxes_a[label], sizes), _Surface(two, label, boxes_b[label], sizes), sizes
        )
    return result


class _Surface:
    """The surface of one label: the cells it runs through, ``(n, D)``, and the area in each, ``(n,)``."""

    def __init__(self, labels: np.ndarray, label: int, box: Box, spacing: np.ndarray) -> None:
        inside = np.pad(labels[box] == label, 1)
        if inside.ndim == 2:  # a slice is a slab of height 1: areas are lengths then
            inside = np.stack([inside, inside])
        corners = np.zeros([n - 1 for n in inside.shape], np.uint8)
        for bit, corner in enumerate(CORNERS):
            part = inside[tuple(slice(c, n - 1 + c) for c, n in zip(corner, inside.shape, strict=True))]
            corners |= part.view(np.uint8) << np.uint8(bit)
        at = np.nonzero((corners != 0) & (corners != _ALL))
        edges = (1.0,) * (3 - labels.ndim) + tuple(spacing.tolist())
        self.area = areas(edges)[corners[at]]
        start = np.array([edge.start for edge in box]) - 1
        self.cells = np.stack(at[-labels.ndim :], 1) + start

    def distances(self, other: "_Surface", spacing: np.ndarray) -> np.ndarray:
        """From each cell to the nearest of the other surface's, mm."""
        low = np.minimum(self.cells.min(0), other.cells.min(0))
        shape = np.maximum(self.cells.max(0), other.cells.max(0)) - low + 1
        shared = np.zeros(shape, dtype=bool)
        shared[tuple((other.cells - low).T)] = True
        apart = ~shared[tuple((self.cells - low).T)]
        result = np.zeros(len(self.cells))
        if apart.any():
            tree = KDTree(other.cells * spacing, leafsize=20, compact_nodes=False, balanced_tree=False)
            result[apart] = tree.query(self.cells[apart] * spacing, workers=torch.get_num_threads())[0]
        return result


def _compare(one: _Surface, two: _Surface, spacing: np.ndarray) -> dict[str, float]:
    there, back = one.distances(two, spacing), two.distances(one, spacing)
    total = float(one.area.sum() + two.area.sum())
    return {
        "hd95": max(_within(there, one.area), _within(back, two.area)),
        "assd": float(there @ one.area + back @ two.area) / total,
    }


def _within(distances: np.ndarray, area: np.ndarray, share: float = 0.95) -> float:
    """The distance that this share of the area stays within."""
    order = np.argsort(distances, kind="stable")
    reached = np.cumsum(area[order])
    return float(distances[order[min(np.searchsorted(reached, share * reached[-1]), len(order) - 1)]])
