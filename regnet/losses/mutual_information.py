"""Mutual information: how well one image's intensities tell the other's, whatever the relation between them."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from regnet.losses._analytic import attach, wants_gradient
from regnet.losses._histogram import Bins, Range, add_gradient, histogram
from regnet.losses._weights import check_pair
from regnet.losses.term import ImageTerm, Tensors


def mutual_information(
    x: Tensor,
    y: Tensor,
    bins: int = 32,
    mask: Tensor | None = None,
    range_x: Range = None,
    range_y: Range = None,
    normalised: bool = False,
) -> Tensor:
    """Minus the mutual information of the intensities, or two minus the normalised one.

    The joint histogram p is Parzen's, with cubic B-spline windows one bin wide in either direction, so that it is
    smooth in the intensities. With H(p) = -Σ p log p (0 log 0 = 0, no constant), I = H(p_x) + H(p_y) - H(p_xy) in nats;
    normalised, NMI = (H(p_x) + H(p_y)) / H(p_xy). Intensities are spread from the first to the last bin that holds a
    whole window, so gain and offset do not matter; those outside a given range count at its ends.

    Args:
        x, y: ``(N, C, *spatial)``, on one grid; each channel is compared with its own.
        bins: along either axis of the histogram, at least 5.
        mask: weight of each voxel, >= 0, ``(N or 1, C or 1, *spatial)``. It is not differentiated.
        range_x, range_y: lowest and highest intensity; by default those of each sample and channel where the mask is
            not 0, which are taken as constants by the gradient.
        normalised: NMI instead of I.

    Returns:
        0-d: the mean over samples and channels of -I, in [-log bins, 0] nats, or of 2 - NMI, in [0, 1]. A constant
        image gives 0, or 1; equal images do not reach the least value, since the windows blur. An empty mask adds 0.
        Computed in float64 histograms; its gradient is exact, and differentiable no further.

    Raises:
        ValueError: the shapes do not fit, too few bins, or a range that does not grow.

    Source:
        Mattes et al., IEEE Transactions on Medical Imaging 2003; Studholme et al., Pattern Recognition 1999.
    """
    x, y, weight = check_pair(x, y, mask)
    if bins < 5:
        raise ValueError(f"a histogram needs at least 5 bins, one cubic window on either side: got {bins}")
    wanted = [wants_gradient(image) for image in (x, y)]
    share = 1 / (len(x) * x.shape[1])
    with torch.no_grad(), torch.autocast(x.device.type, enabled=False):
        gradients = [_zeros(image) if wants else None for image, wants in zip((x, y), wanted, strict=True)]
        value = torch.zeros((), dtype=torch.float64, device=x.device)
        for n in range(len(x)):
            for c in range(x.shape[1]):
                own = None if weight is None else weight[n % len(weight), c % weight.shape[1]].flatten()
                if own is not None and not bool((own > 0).any()):
                    continue
                places = [
                    Bins(image[n, c].flatten(), own, bins, limits) for image, limits in ((x, range_x), (y, range_y))
                ]
                information, slope = _information(histogram(places, own, bins), normalised)
                value += share * information
                if any(gradient is not None for gradient in gradients):
                    into = [None if gradient is None else gradient[n, c].view(-1) for gradient in gradients]
                    add_gradient(into, places, own, share * slope)
    return attach(value.to(torch.promote_types(_wide(x), _wide(y))), *zip((x, y), gradients, strict=True))


class MutualInformation(ImageTerm):
    """:func:`mutual_information` of the moved and the fixed image."""

    def __init__(
        self,
        bins: int = 32,
        normalised: bool = False,
        range_moving: Sequence[float] | None = None,
        range_fixed: Sequence[float] | None = None,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.bins = bins
        self.normalised = normalised
        self.range_moving = range_moving
        self.range_fixed = range_fixed
        self.unit = "" if normalised else "nats"

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        moved, fixed, mask = self.images(outputs, batch)
        return mutual_information(
            moved, fixed, self.bins, mask, self.range_moving, self.range_fixed, normalised=self.normalised
        )


def _zeros(image: Tensor) -> Tensor:
    return torch.zeros(image.shape, dtype=_wide(image), device=image.device)


def _wide(image: Tensor) -> torch.dtype:
    return torch.promote_types(image.dtype, torch.float32)


def _information(p: Tensor, normalised: bool) -> tuple[Tensor, Tensor]:
    """The loss of one histogram of sum 1, and its derivative in each entry before it was divided by the sum."""
    (x, of_x), (y, of_y), (both, of_both) = _entropy(p.sum(1)), _entropy(p.sum(0)), _entropy(p)
    apart, of_apart = x + y, of_x[:, None] + of_y
    if not normalised:
        value, slope = both - apart, of_both - of_apart
    elif bool(both == 0):
        value, slope = torch.ones_like(both), torch.zeros_like(p)
    else:
        value, slope = 2 - apart / both, (apart / both * of_both - of_apart) / both
    return value, slope - (p * slope).sum()


def _entropy(p: Tensor) -> tuple[Tensor, Tensor]:
    """-Σ p log p in nats, and its derivative; an entry of 0 adds 0 and has a finite derivative."""
    log = p.clamp(min=torch.finfo(p.dtype).tiny).log()
    return -(p * log).sum(), -(log + 1)
