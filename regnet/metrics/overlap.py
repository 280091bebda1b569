"""Dice coefficients of label maps."""

from collections.abc import Sequence

import numpy as np
from torch import Tensor


def dice(a: Tensor, b: Tensor, labels: Sequence[int] | None = None) -> dict[int, float]:
    """Dice coefficient 2 |A ∩ B| / (|A| + |B|) of each label.

    Args:
        a, b: integers, of one shape.
        labels: which labels; None takes every one found in either, without 0.

    Returns:
        label -> coefficient in [0, 1]. A label found in one map alone has 0, one found in neither has NaN.

    Raises:
        ValueError: the shapes differ, or the labels are not integers.
    """
    one, two = label_arrays(a, b)
    sizes_a, sizes_b, sizes_both = _sizes(one), _sizes(two), _sizes(one[one == two])
    wanted = sorted(sizes_a.keys() | sizes_b.keys()) if labels is None else [int(label) for label in labels]
    result = {}
    for label in wanted:
        total = sizes_a.get(label, 0) + sizes_b.get(label, 0)
        result[label] = 2 * sizes_both.get(label, 0) / total if total else float("nan")
    return result


def label_arrays(a: Tensor, b: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Two label maps as arrays, once it is sure that they can be compared."""
    for labels in (a, b):
        if labels.is_floating_point() or labels.is_complex():
            raise ValueError(f"label maps must be of integers: got {labels.dtype}")
    if a.shape != b.shape:
        raise ValueError(f"label maps must have one shape: got {tuple(a.shape)} and {tuple(b.shape)}")
    return a.detach().cpu().numpy(), b.detach().cpu().numpy()


def _sizes(labels: np.ndarray) -> dict[int, int]:
    """label -> number of voxels, without 0."""
    values, counts = np.unique(labels[labels != 0], return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))
