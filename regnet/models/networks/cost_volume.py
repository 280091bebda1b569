"""A network that compares features of both images itself, from coarse to fine, whatever their contrast."""

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from regnet import ops
from regnet.models.convolution import convolution
from regnet.models.heads.field import FieldLayer, to_grid
from regnet.models.networks.blocks import block, double, to_channels_last

_SHARPNESS = 10.0  # of the choice among shifts, at first
_TRUST = 0.3  # in that choice, at first
_FLAT = 0.02  # edges fainter than this, of the images' range, count as none
_SQUARINGS = 4


class CostVolumeNet(nn.Module):
    """Find a velocity in levels: warp, compare each node with its neighbours, move to where they are alike, correct.

    The features of an image begin with the size of its edges relative to those around, so that they are nearly the same
    for any gain and offset, negative ones too. Where the best shift lies is computed, not learned: so it registers
    after few steps of training. It returns the velocity itself; its head is ``VelocityHead`` with ``in_channels`` null
    and stride 2.

    Args:
        ndim: number of spatial axes, 1 to 3.
        in_channels: channels of the moving and the fixed image together.
        encoder: channels of the features at each level, from the full resolution down; all but the first are compared.
        hidden: channels of what corrects.

    Source:
        Sun et al., CVPR 2018 (PWC-Net); in registration Kang et al., Medical Image Analysis 2022 (Dual-PRNet++).
    """

    stride = 2

    def __init__(
        self, ndim: int, in_channels: int = 2, encoder: Sequence[int] = (16, 24, 32), hidden: int = 32
    ) -> None:
        super().__init__()
        if len(encoder) < 2:
            raise ValueError(f"the encoder needs two levels or more, got {len(encoder)}")
        self.in_channels = in_channels
        self.edges = convolution(ndim, in_channels // 2, encoder[0])
        self.edges.get_parameter("bias").requires_grad_(False)  # an edge has none; unused weights stop DDP
        self.down = nn.ModuleList(block(ndim, inside, outside, stride=2) for inside, outside in pairwise(encoder))
        shifts = torch.tensor(list(product((-1.0, 0.0, 1.0), repeat=ndim)))
        self.register_buffer("shifts", shifts, persistent=False)
        widths = encoder[:0:-1]
        self.sharpness = nn.Parameter(torch.full((len(widths),), _SHARPNESS).log())
        self.trust = nn.Parameter(torch.full((len(widths),), _TRUST))
        self.correct = nn.ModuleList(
            nn.Sequential(
                block(ndim, len(shifts) + ndim + width + (hidden if number else 0), hidden), block(ndim, hidden, hidden)
            )
            for number, width in enumerate(widths)
        )
        self.fields = nn.ModuleList(FieldLayer(ndim, hidden) for _ in widths)

    def forward(self, moving: Tensor, fixed: Tensor) -> Tensor:
        """Velocity ``(N, D, *ceil(spatial / 2))`` float32, in its own voxels, of images ``(N, C, *spatial)``.

        Raises:
            ValueError: the images differ in shape, or their channels do not add up to ``in_channels``.
        """
        if moving.shape != fixed.shape or 2 * moving.shape[1] != self.in_channels:
            raise ValueError(
                f"the network takes {self.in_channels // 2} channels of two images on one grid, got "
                f"{tuple(moving.shape)}, {tuple(fixed.shape)}"
            )
        velocity, hidden = moving.new_zeros(()), None
        for number, level in enumerate(self.describe(torch.cat([moving, fixed]))[::-1]):
            there, here = level.chunk(2)
            shape = here.shape[2:]
            if hidden is not None:
                velocity, hidden = to_grid(velocity, shape, 2), double(hidden, shape)
                flow = ops.integrate(velocity, steps=_SQUARINGS, bound="replicate")
                there = ops.warp(there.float().contiguous(), flow, bound="replicate", extrapolate="edge")
            scores = correlation(there, here)
            weights = (local_mean(scores) * self.sharpness[number].exp()).softmax(1)
            with torch.autocast(moving.device.type, enabled=False):  # fields stay float32
                step = torch.einsum("nk...,kd->nd...", weights.float(), self.shifts)
            known = [scores, step, here] if hidden is None else [scores, step, here, hidden]
            hidden = self.correct[number](to_channels_last(torch.cat([each.to(here.dtype) for each in known], dim=1)))
            velocity = velocity + self.trust[number] * step + self.fields[number](hidden)
        return velocity

    def describe(self, images: Tensor) -> list[Tensor]:
        """Features of each image by itself at each level that is compared, the finest first."""
        weight = self.edges.weight
        weight = weight - weight.mean(dim=list(range(2, weight.ndim)), keepdim=True)
        convolve = (F.conv1d, F.conv2d, F.conv3d)[images.ndim - 3]
        sizes = convolve(to_channels_last(images), weight, padding=1).abs()
        features = [sizes / (local_mean(sizes.mean(1, keepdim=True), 5) + _FLAT)]
        for level in self.down:
            features.append(level(features[-1]))
        return features[1:]


def correlation(moving: Tensor, fixed: Tensor) -> Tensor:
    """Correlation across the channels between each fixed node and the moving nodes around it.

    Args:
        moving, fixed: ``(N, C, *spatial)``, C > 1.

    Returns:
        ``(N, 3**D, *spatial)`` in [-1, 1], channel by channel for the shifts -1, 0, 1 along each axis, the last axis
        fastest; 0 outside the moving grid, and where a node has the same value in all channels.
    """
    scores: Tensor = _Correlation.apply(*(_standardised(each.float()).contiguous() for each in (moving, fixed)))
    return scores


class _Correlation(torch.autograd.Function):
    """Mean of the products for each shift; torch would keep and add up whole images for each."""

    @staticmethod
    def forward(ctx: Any, moving: Tensor, fixed: Tensor) -> Tensor:
        around = F.pad(moving, [1] * 2 * (fixed.ndim - 2))
        ctx.save_for_backward(around, fixed)
        return torch.stack([(around[place] * fixed).mean(1) for place in _places(fixed)], dim=1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        around, fixed = ctx.saved_tensors
        of_around, of_fixed = torch.zeros_like(around), torch.zeros_like(fixed)
        for slope, place in zip((gradient / fixed.shape[1]).split(1, dim=1), _places(fixed), strict=True):
            of_around[place].addcmul_(fixed, slope)
            of_fixed.addcmul_(around[place], slope)
        inner: tuple[Any, ...] = (..., *([slice(1, -1)] * (fixed.ndim - 2)))
        return of_around[inner], of_fixed


def _places(fixed: Tensor) -> Iterator[tuple[Any, ...]]:
    """Where the nodes of ``fixed``, shifted, are in what has one more at each face."""
    for begins in product(range(3), repeat=fixed.ndim - 2):
        yield (..., *(slice(begin, begin + n) for begin, n in zip(begins, fixed.shape[2:], strict=True)))


def local_mean(image: Tensor, window: int = 3) -> Tensor:
    """Mean over the part of the window that is on the grid, ``(N, C, *spatial)``."""
    pool = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[image.ndim - 3]
    sides = [window // 2] * 2 * (image.ndim - 2)  # torch pads no grid that is smaller than the window
    inside = F.pad(image.new_ones(1, 1, *image.shape[2:]), sides)
    mean: Tensor = pool(F.pad(image, sides), window, 1) / pool(inside, window, 1)
    return mean


def _standardised(features: Tensor) -> Tensor:
    """Mean 0 and deviation 1 over the channels of each node."""
    centred = features - features.mean(1, keepdim=True)
    return centred * (centred.square().mean(1, keepdim=True) + 1e-6).rsqrt()
