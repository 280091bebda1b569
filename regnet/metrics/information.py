"""How much one image says about another, whatever their contrasts."""

import numpy as np
from torch import Tensor

from regnet.metrics._mask import inside


def normalised_mutual_information(a: Tensor, b: Tensor, mask: Tensor | None = None, bins: int = 64) -> float:
    """``(H(a) + H(b)) / H(a, b)``, of a joint histogram.

    Args:
        a, b: ``(N, C, *spatial)``, of one shape; C is 1 where there is a mask.
        mask: ``(N or 1, 1, *spatial)``; voxels with a value above 0 count.
        bins: how many of equal width cover each image's range inside the mask.

    Returns:
        From 1 (they know nothing of each other) to 2 (each decides the other); NaN where the mask is empty or a
        value it counts is not finite, and 1 if
        either image is constant. The image with itself gives 2. Few voxels in many bins score too high.

    Raises:
        ValueError: the shapes differ, the mask does not fit, or there are no bins.

    Source:
        Studholme et al., Pattern Recognition 1999.
    """
    if a.shape != b.shape:
        raise ValueError(f"images must have one shape: got {tuple(a.shape)} and {tuple(b.shape)}")
    if bins < 1:
        raise ValueError(f"bins must be at least 1: got {bins}")
    counted = [inside(image, mask).double().numpy() for image in (a, b)]
    if not counted[0].size or not np.isfinite(counted).all():
        return float("nan")
    one, two = (_binned(values, bins) for values in counted)
    joint = np.bincount(one * bins + two, minlength=bins * bins).reshape(bins, bins) / one.size
    total = _entropy(joint.ravel())
    return (_entropy(joint.sum(1)) + _entropy(joint.sum(0))) / total if total else 1.0


def _binned(values: np.ndarray, bins: int) -> np.ndarray:
    low, high = values.min(), values.max()
    width = (high - low) / bins or 1.0
    return np.minimum((values - low) / width, bins - 1).astype(np.int64)


def _entropy(share: np.ndarray) -> float:
    share = share[share > 0]
    return float(-(share * np.log(share)).sum())
