"""Global normalised cross-correlation: 0 is alike, whatever gain and offset the two images have as a whole."""

from typing import Any

import torch
from torch import Tensor

from regnet.losses._precision import full_precision
from regnet.losses._weights import check_pair
from regnet.losses.term import ImageTerm, Tensors

_FLAT = 3.0
"""An image is flat where its standard deviation is at most so many roundings of its root mean square."""


@full_precision
def ncc(x: Tensor, y: Tensor, mask: Tensor | None = None, squared: bool = False) -> Tensor:
    """One minus Pearson's correlation cc = cov(x, y) / sqrt(var(x) var(y)), of each sample and channel.

    Centred before anything is squared, and without a constant in the denominator, so that gain and offset of either
    image do not matter. Where one image is flat, cc = 0; channels flat in both images are left out.

    Args:
        x, y: ``(N, C, *spatial)``, on one grid; each channel is compared with its own.
        mask: weight of each voxel, >= 0, ``(N or 1, C or 1, *spatial)``. It is not differentiated.
        squared: cc² instead of cc, so that the sign of the contrast does not matter.

    Returns:
        0-d in [0, 2], or [0, 1] where ``squared``: the mean over samples of the mean over channels; a sample with
        nothing to compare adds 0.

    Raises:
        ValueError: the shapes do not fit.
    """
    x, y, mask = check_pair(x, y, mask)
    weight = (torch.ones_like(x[:1, :1]) if mask is None else mask.to(x.dtype)).flatten(2)
    share = weight / weight.sum(2, keepdim=True).clamp(min=torch.finfo(x.dtype).tiny)
    (a, var_a, seen_a), (b, var_b, seen_b) = _centred(x.flatten(2), share), _centred(y.flatten(2), share)
    both, either = seen_a & seen_b, (seen_a | seen_b).expand(len(x), -1)
    scale = torch.where(both, var_a, 1).rsqrt() * torch.where(both, var_b, 1).rsqrt()
    cc = torch.where(both, (share * a * b).sum(2) * scale, 0)
    unlike = 1 - (cc.square() if squared else cc)
    return ((unlike * either).sum(1) / either.sum(1).clamp(min=1)).mean()


def _centred(image: Tensor, share: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The image without its mean, over its largest part; its variance, and whether that is more than rounding."""
    centred = image - (share * image).sum(2, keepdim=True)
    centred = centred - (share * centred).sum(2, keepdim=True)  # what rounding left of the first mean
    # squares of faint images would vanish; a gain does not matter, so it has no gradient either
    gain = torch.where(share > 0, centred.detach(), 0).abs().amax(2, keepdim=True)
    gain = torch.where(gain > 0, gain, 1)
    centred = centred / gain
    variance = (share * centred.square()).sum(2)
    limit = (_FLAT * torch.finfo(image.dtype).eps) ** 2
    # told so that NaN is no rounding, and reaches the loss
    return centred, variance, ~(variance <= limit * (share * (image / gain).square()).sum(2))


class NCC(ImageTerm):
    """:func:`ncc` of the moved and the fixed image."""

    def __init__(self, squared: bool = False, **common: Any) -> None:
        super().__init__(**common)
        self.squared = squared

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        moved, fixed, mask = self.images(outputs, batch)
        return ncc(moved, fixed, mask, self.squared)
