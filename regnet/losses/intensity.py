"""Differences of intensity, for images whose intensities mean the same in both: 0 is equal."""

from typing import Any

from torch import Tensor

from regnet.losses._precision import full_precision
from regnet.losses._weights import check_pair, weighted_mean
from regnet.losses.term import ImageTerm, Tensors


@full_precision
def mse(x: Tensor, y: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mean of (x - y)².

    Args:
        x, y: ``(N, C, *spatial)``, on one grid.
        mask: weight of each voxel, >= 0, ``(N or 1, C or 1, *spatial)``. The mean is over the mask, not over the grid.
            It is not differentiated.

    Returns:
        0-d, >= 0, in intensity²: the mean over samples of each sample's weighted mean; a sample with an empty mask
        adds 0.

    Raises:
        ValueError: the shapes do not fit.
    """
    x, y, mask = check_pair(x, y, mask)
    return weighted_mean((x - y).square(), mask)


@full_precision
def mae(x: Tensor, y: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mean of abs(x - y); the gradient where they are equal is 0.

    Arguments, reduction and errors as of :func:`mse`; the value is in intensity.
    """
    x, y, mask = check_pair(x, y, mask)
    return weighted_mean((x - y).abs(), mask)


@full_precision
def charbonnier(x: Tensor, y: Tensor, scale: float = 0.01, mask: Tensor | None = None) -> Tensor:
    """Mean of sqrt((x - y)² + scale²) - scale: quadratic below ``scale``, linear above, smooth everywhere.

    Arguments, reduction and errors as of :func:`mse`; ``scale`` > 0 and the value are in intensity.

    Source:
        Charbonnier et al., ICIP 1994; less ``scale``, so that equal images give 0.
    """
    x, y, mask = check_pair(x, y, mask)
    square = (x - y).square()
    # square / (root + scale), which does not cancel where the difference is small
    return weighted_mean(square / ((square + _positive(scale) ** 2).sqrt() + scale), mask)


@full_precision
def geman_mcclure(x: Tensor, y: Tensor, scale: float = 0.1, mask: Tensor | None = None) -> Tensor:
    """Mean of d² / (d² + scale²), d = x - y: in [0, 1), so that an outlier counts as one voxel at most.

    Arguments, reduction and errors as of :func:`mse`; ``scale`` > 0 is in intensity, the value has no unit.

    Source:
        Geman and McClure, Bulletin of the International Statistical Institute 1987.
    """
    x, y, mask = check_pair(x, y, mask)
    square = (x - y).square()
    return weighted_mean(square / (square + _positive(scale) ** 2), mask)


def _positive(scale: float) -> float:
    if not scale > 0:
        raise ValueError(f"scale must be positive, in units of intensity: got {scale}")
    return scale


class MSE(ImageTerm):
    """:func:`mse` of the moved and the fixed image."""

    unit = "intensity²"

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        return mse(*self.images(outputs, batch))


class MAE(ImageTerm):
    """:func:`mae` of the moved and the fixed image."""

    unit = "intensity"

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        return mae(*self.images(outputs, batch))


class Charbonnier(ImageTerm):
    """:func:`charbonnier` of the moved and the fixed image."""

    unit = "intensity"

    def __init__(self, scale: float = 0.01, **common: Any) -> None:
        super().__init__(**common)
        self.scale = scale

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        x, y, mask = self.images(outputs, batch)
        return charbonnier(x, y, self.scale, mask)


class GemanMcClure(ImageTerm):
    """:func:`geman_mcclure` of the moved and the fixed image."""

    def __init__(self, scale: float = 0.1, **common: Any) -> None:
        super().__init__(**common)
        self.scale = scale

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        x, y, mask = self.images(outputs, batch)
        return geman_mcclure(x, y, self.scale, mask)
