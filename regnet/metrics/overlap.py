"""Dice coefficients of label maps."""

from collections.abc import Sequence

from torch import Tensor

from regnet.metrics._labels import chosen, label_arrays, sizes


def dice(a: Tensor, b: Tensor, labels: Sequence[int] | None = None) -> dict[int, float]:
    """Dice coefficient 2 |A ∩ B| / (|A| + |B|) of each label.

    Args:
        a, b: integers, of one shape.
        labels: which labels; None takes every one found in either, without 0. Learn2Reg takes those found in the fixed
            and in the moving map before it is warped: :func:`common_labels`.

    Returns:
        label -> coefficient in [0, 1]. A label found in one map alone has 0, one found in neither has NaN.

    Raises:
        ValueError: the shapes differ, or the labels are not integers.

    Source:
        Dice, Ecology 1945.
    """
    one, two = label_arrays(a, b)
    sizes_a, sizes_b, sizes_both = sizes(one), sizes(two), sizes(one[one == two])
    result = {}
    for label in chosen(labels, sizes_a, sizes_b):
        total = sizes_a.get(label, 0) + sizes_b.get(label, 0)
        result[label] = 2 * sizes_both.get(label, 0) / total if total else float("nan")
    return result


def common_labels(a: Tensor, b: Tensor) -> list[int]:
    """Labels other than 0 that both maps hold, ascending; the maps may differ in shape.

    These are the ones that Learn2Reg scores, with the moving map as it is before the warp: what one image does not
    show says nothing about the map between them.

    Raises:
        ValueError: the labels are not integers.
    """
    (one,), (two,) = label_arrays(a), label_arrays(b)
    return sorted(sizes(one).keys() & sizes(two).keys())
