"""Local normalised cross-correlation: 0 is alike, whatever gain and offset the two images have around each place."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from regnet.losses._analytic import attach, wants_gradient
from regnet.losses._lncc import correlation
from regnet.losses._weights import check_pair
from regnet.losses._window import Window
from regnet.losses.term import ImageTerm, Tensors

_PASSES = {"box": 1, "gaussian": 3}


def lncc(
    x: Tensor,
    y: Tensor,
    window: int | Sequence[int] = 9,
    mask: Tensor | None = None,
    kernel: str = "box",
    squared: bool = True,
) -> Tensor:
    """One minus the mean squared local normalised cross-correlation.

    Around each voxel the correlation coefficient cc of the two images is taken over a window, cut off at the grid's
    faces: cc = cov(x, y) / sqrt(var(x) var(y)), of the centred images, with no constant anywhere. A window flat in both
    images says nothing and is left out of the mean; one that is flat in one image alone counts as cc = 0, since
    structure faces nothing. Flat is a variance of at most 1e-6 of the image's variance plus the window's mean square
    (about the image's mean). Equal images give 0, unrelated ones nearly 1; gain and offset of either image do not
    matter, nor does the sign of the contrast where ``squared``. The cost does not depend on the window.

    Args:
        x, y: ``(N, C, *spatial)``, on one grid; each channel is compared with its own.
        window: voxels, odd, one or one per axis; may exceed the grid.
        mask: weight of each voxel, >= 0, ``(N or 1, C or 1, *spatial)``. It weights the statistics of each window and
            the mean over windows alike, so what lies outside of it has no influence: masking is cropping. It is not
            differentiated.
        kernel: "box", every voxel of the window alike; or "gaussian", three boxes of ``window`` in turn, which is a
            bell of standard deviation sqrt(window² - 1) / 2.
        squared: cc²; False: cc itself, so that an inverted contrast counts as unlike.

    Returns:
        0-d in [0, 1], or [0, 2] where not ``squared``: the mean over samples; a sample without any window to compare
        adds 0. Computed in float64 if either image is, else in float32; its gradient is exact, and differentiable no
        further.

    Raises:
        ValueError: the shapes do not fit, a window is even, or an unknown kernel.

    Source:
        Avants et al., Medical Image Analysis 2008; without their constant in the denominator.
    """
    x, y, weight = check_pair(x, y, mask)
    widths = _check_window(window, x.dim() - 2)
    if kernel not in _PASSES:
        raise ValueError(f"kernel must be one of {', '.join(_PASSES)}: got {kernel!r}")
    wanted = wants_gradient(x), wants_gradient(y)
    with torch.no_grad(), torch.autocast(x.device.type, enabled=False):
        images = [image if image.dtype == torch.float64 else image.float() for image in (x, y)]
        value, gradient_x, gradient_y = correlation(
            images[0], images[1], Window(widths, _PASSES[kernel], squared), weight, *wanted
        )
    return attach(value, (x, gradient_x), (y, gradient_y))


class LNCC(ImageTerm):
    """:func:`lncc` of the moved and the fixed image."""

    def __init__(
        self, window: int | Sequence[int] = 9, kernel: str = "box", squared: bool = True, **common: Any
    ) -> None:
        super().__init__(**common)
        self.window = window
        self.kernel = kernel
        self.squared = squared

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        moved, fixed, mask = self.images(outputs, batch)
        return lncc(moved, fixed, self.window, mask, self.kernel, self.squared)


def _check_window(window: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    """One odd width per axis."""
    windows = (window,) * ndim if isinstance(window, int) else tuple(window)
    if len(windows) != ndim or any(width < 1 or width % 2 == 0 for width in windows):
        raise ValueError(f"window must be odd, one or one for each of {ndim} axes: got {window}")
    return windows
