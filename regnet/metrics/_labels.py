"""Label maps as arrays: which labels they hold, how many voxels of each, and where."""

from collections.abc import Iterable

import numpy as np
from scipy import ndimage
from torch import Tensor

Box = tuple[slice, ...]

_TABLE = 1 << 16  # labels below this are counted in a table of their own length


def label_arrays(*maps: Tensor) -> list[np.ndarray]:
    """Label maps as arrays, once it is sure that they can be compared.

    Raises:
        ValueError: the shapes differ, or the labels are not integers.
    """
    for labels in maps:
        if labels.is_floating_point() or labels.is_complex():
            raise ValueError(f"label maps must be of integers: got {labels.dtype}")
        if labels.shape != maps[0].shape:
            raise ValueError(f"label maps must have one shape: got {tuple(maps[0].shape)} and {tuple(labels.shape)}")
    return [labels.detach().cpu().numpy() for labels in maps]


def chosen(labels: Iterable[int] | None, *found: Iterable[int]) -> list[int]:
    """The labels asked for; None: all that any of the maps holds, ascending.

    Raises:
        ValueError: one is no integer.
    """
    if labels is None:
        return sorted(set().union(*found))
    asked = list(labels)
    if any(int(label) != label for label in asked):
        raise ValueError(f"labels must be integers: got {asked}")
    return [int(label) for label in asked]


def sizes(labels: np.ndarray) -> dict[int, int]:
    """label -> number of voxels, without 0."""
    if not labels.size:
        return {}
    if labels.min() >= 0 and labels.max() < _TABLE:
        counts = np.bincount(labels.ravel())
        return {int(label): int(counts[label]) for label in np.flatnonzero(counts) if label}
    values, counts = np.unique(labels, return_counts=True)
    return {int(label): int(count) for label, count in zip(values, counts, strict=True) if label}


def boxes(labels: np.ndarray) -> dict[int, Box]:
    """label -> the smallest box that holds it, without 0."""
    if not labels.size or not labels.any():
        return {}
    if labels.min() >= 0 and labels.max() < _TABLE:
        found = ndimage.find_objects(labels.astype(np.int32, copy=False))
        return {label: box for label, box in enumerate(found, 1) if box is not None}
    # Ranks, since find_objects makes room for every number up to the largest label.
    values = np.unique(labels[labels != 0])
    ranks = np.searchsorted(values, labels).clip(max=values.size - 1).astype(np.int32) + 1
    ranks[labels == 0] = 0
    return {int(value): box for value, box in zip(values, ndimage.find_objects(ranks), strict=True)}
