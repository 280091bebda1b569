"""Normalised gradient fields: edges of either image shall lie along edges of the other."""

from typing import Any

import torch
from torch import Tensor

from regnet.losses._differences import VoxelSize, check_voxel_size
from regnet.losses._precision import full_precision
from regnet.losses._weights import check_pair, weighted_mean
from regnet.losses.term import ImageTerm, Tensors


@full_precision
def ngf(x: Tensor, y: Tensor, edge: float = 1.0, voxel_size: VoxelSize = 1.0, mask: Tensor | None = None) -> Tensor:
    """Mean of 1 - (abs(a·b) + e²)² / ((a·a + e²)(b·b + e²)), a and b the gradients of the two images.

    Each gradient is divided by its root mean square over the sample and channel first, so that gain and offset do not
    matter; nor does the sign of the contrast, since the formula is even in a·b: an image and its negative give 0.
    Differences are central, one-sided at the faces. Where neither image has an edge, the value is 0.

    Args:
        x, y: ``(N, C, *spatial)``, on one grid; each channel is compared with its own.
        edge: e > 0, the gradient that is told from noise, as a multiple of the image's root mean square gradient.
        voxel_size: mm; one, one per axis, or ``(N or 1, D)``. Only the ratios between axes matter.
        mask: weight of each voxel, >= 0, ``(N or 1, C or 1, *spatial)``. It weights the mean and the root mean square.
            It is not differentiated.

    Returns:
        0-d in [0, 1], reduced as :func:`regnet.losses.mse`.

    Raises:
        ValueError: the shapes do not fit, or ``edge`` is not positive.

    Source:
        Haber and Modersitzki, MICCAI 2006: (a·b)²; with e² in the product, so that it is 0 where both are flat, as
        König and Rühaak, ISBI 2014. Theirs has a·b, which tells the signs of edges weaker than e apart: the absolute
        value is ours.
    """
    x, y, mask = check_pair(x, y, mask)
    if not edge > 0:
        raise ValueError(f"edge must be positive, a multiple of the mean gradient: got {edge}")
    size = check_voxel_size(voxel_size, x)
    a, b = _gradient(x, size, mask), _gradient(y, size, mask)
    inner = (a * b).sum(2).abs() + edge**2
    lengths = (a.square().sum(2) + edge**2) * (b.square().sum(2) + edge**2)
    return weighted_mean(1 - inner.square() / lengths, mask)


def _gradient(image: Tensor, size: Tensor, mask: Tensor | None) -> Tensor:
    """``(N, C, D, *spatial)``, of root mean square 1; 0 for a constant image."""
    parts = []
    for axis, n in enumerate(image.shape[2:], start=2):
        if n == 1:
            parts.append(0 * image)
            continue
        step = image.diff(dim=axis)
        first, last = step.narrow(axis, 0, 1), step.narrow(axis, n - 2, 1)
        middle = (step.narrow(axis, 1, n - 2) + step.narrow(axis, 0, n - 2)) / 2
        along = size[:, axis - 2].view(-1, *[1] * (image.dim() - 1))
        parts.append(torch.cat([first, middle, last], dim=axis) / along)
    gradient = torch.stack(parts, dim=2)
    square = gradient.square().sum(2)
    weight = torch.ones_like(square) if mask is None else mask.to(square.dtype).expand_as(square)
    total = weight.flatten(2).sum(2)
    mean = (weight * square).flatten(2).sum(2) / torch.where(total > 0, total, 1)
    scale = torch.where(mean > 0, torch.where(mean > 0, mean, 1).rsqrt(), 0)
    return gradient * scale.view(*scale.shape, *[1] * (image.dim() - 1))


class NGF(ImageTerm):
    """:func:`ngf` of the moved and the fixed image, in the batch's spacing."""

    def __init__(self, edge: float = 1.0, **common: Any) -> None:
        super().__init__(**common)
        self.edge = edge

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        moved, fixed, mask = self.images(outputs, batch)
        return ngf(moved, fixed, self.edge, batch.get("spacing", 1.0), mask)
