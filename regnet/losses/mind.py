"""Self-similarity descriptors (MIND-SSC): what surrounds a voxel, told without its intensities."""

import itertools
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regnet import ops
from regnet.losses._precision import full_precision
from regnet.losses._weights import check_pair, weighted_mean
from regnet.losses.term import ImageTerm, Tensors

_BOUNDS = (1e-3, 1e3)
"""Of a voxel's variance, as shares of the image's mean."""


@full_precision
def mind(x: Tensor, y: Tensor, radius: int = 2, dilation: int = 2, mask: Tensor | None = None) -> Tensor:
    """Mean squared difference of the self-similarity descriptors of two images.

    Arguments of the descriptor as of :func:`mind_descriptor`; it does not change with gain, offset or inversion of the
    contrast, so that images of different modalities can be compared.

    Args:
        x, y: ``(N, C, *spatial)``, on one grid.
        radius, dilation: see :func:`mind_descriptor`.
        mask: weight of each voxel, >= 0, ``(N or 1, C or 1, *spatial)``. It weights the mean, not the patches. It is
            not differentiated.

    Returns:
        0-d in [0, 1]: the mean over descriptor entries and voxels; over samples as :func:`regnet.losses.mse`.

    Raises:
        ValueError: the shapes do not fit; and as :func:`mind_descriptor`.

    Source:
        Heinrich et al., MICCAI 2013.
    """
    x, y, mask = check_pair(x, y, mask)
    squares = (mind_descriptor(x, radius, dilation) - mind_descriptor(y, radius, dilation)).square()
    per_voxel = squares.unflatten(1, (x.shape[1], -1)).mean(2)
    return weighted_mean(per_voxel, mask)


def mind_descriptor(image: Tensor, radius: int = 2, dilation: int = 2) -> Tensor:
    """The self-similarity context of each voxel.

    Of the 2 D neighbours at ``dilation`` voxels along the axes, each pair that is not opposite (12 pairs in 3-D, 4 in
    2-D) has a distance d_k: the mean squared difference of the patches of half width ``radius`` around the two. An
    entry is exp(-(d_k - min_k d) / v), v the mean of d_k over the pairs, kept within 1e-3 and 1e3 times its mean over
    the image. Beyond the faces the image is continued by its border voxels.

    Args:
        image: ``(N, C, *spatial)``, 2-D or 3-D.
        radius, dilation: voxels, at least 0 and 1.

    Returns:
        ``(N, C * pairs, *spatial)`` in [0, 1]; 1 everywhere for a constant image.

    Raises:
        ValueError: not a 2-D or 3-D image, or a radius or dilation out of range.
    """
    ndim = image.dim() - 2
    if ndim not in (2, 3):
        raise ValueError(f"MIND needs (N, C, *spatial) with 2 or 3 spatial axes: got {tuple(image.shape)}")
    if radius < 0 or dilation < 1:
        raise ValueError(f"radius must be at least 0 and dilation at least 1: got {radius} and {dilation}")
    width, shape = 2 * radius + 1, image.shape[2:]
    padded = F.pad(image, [radius + dilation] * 2 * ndim, mode="replicate")

    def shifted(neighbour: tuple[int, int]) -> Tensor:
        """The image around the neighbour, with a margin of ``radius``."""
        axis, sign = neighbour
        part = padded
        for d, size in enumerate(shape):
            part = part.narrow(d + 2, dilation * (1 + sign * (d == axis)), size + 2 * radius)
        return part

    neighbours = [(axis, sign) for axis in range(ndim) for sign in (-1, 1)]
    inside: Any = (..., *[slice(radius, radius + size) for size in shape])
    distances = torch.stack(
        [
            ops.box_sum((shifted(one) - shifted(other)).square(), width)[inside] / width**ndim
            for one, other in itertools.combinations(neighbours, 2)
            if one[0] != other[0]
        ],
        dim=2,
    )
    variance = distances.mean(2, keepdim=True)
    level = variance.flatten(3).mean(3).view(*variance.shape[:3], *[1] * ndim)
    variance = torch.minimum(torch.maximum(variance, _BOUNDS[0] * level), _BOUNDS[1] * level)
    # the least number that is not 0: a constant image divides 0 by it
    variance = variance.clamp(min=torch.finfo(image.dtype).tiny)
    return torch.exp(-(distances - distances.amin(2, keepdim=True)) / variance).flatten(1, 2)


class MIND(ImageTerm):
    """:func:`mind` of the moved and the fixed image."""

    def __init__(self, radius: int = 2, dilation: int = 2, **common: Any) -> None:
        super().__init__(**common)
        self.radius = radius
        self.dilation = dilation

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        moved, fixed, mask = self.images(outputs, batch)
        return mind(moved, fixed, self.radius, self.dilation, mask)
