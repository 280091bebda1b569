"""What the networks are made of."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regnet.models.convolution import convolution, convolve

SLOPE = 0.2


def block(ndim: int, in_channels: int, out_channels: int, stride: int = 1) -> nn.Sequential:
    """Convolution and leaky ReLU. In place, the activation keeps one copy of its output instead of two."""
    layer = convolution(ndim, in_channels, out_channels, stride)
    nn.init.kaiming_normal_(layer.weight, a=SLOPE)
    return nn.Sequential(layer, nn.LeakyReLU(SLOPE, inplace=True))


class Merge(nn.Module):
    """Double the coarse features, put them beside the fine ones, and convolve both.

    The convolution of two stacked tensors is the sum of two convolutions: so they are never stacked, which saves time
    and memory.

    Args:
        ndim: number of spatial axes.
        coarse, fine, out_channels: channels of the coarse and the fine features, and of the result.
    """

    def __init__(self, ndim: int, coarse: int, fine: int, out_channels: int) -> None:
        super().__init__()
        self.coarse = coarse
        self.layer = convolution(ndim, coarse + fine, out_channels)
        nn.init.kaiming_normal_(self.layer.weight, a=SLOPE)

    def forward(self, coarse: Tensor, fine: Tensor) -> Tensor:
        """``(N, out_channels, *spatial)`` of ``(N, coarse, *ceil(spatial / 2))`` and ``(N, fine, *spatial)``."""
        one, other = self.layer.weight.split([self.coarse, self.layer.in_channels - self.coarse], dim=1)
        # In this order the backward pass is done with the doubled features before it begins with the fine ones.
        out = convolve(fine, other, self.layer.bias)
        out = out.add_(convolve(double(coarse, fine.shape[2:]), one))
        return F.leaky_relu(out, SLOPE, inplace=True)


def double(features: Tensor, shape: Sequence[int]) -> Tensor:
    """Each node repeated twice along every axis, cut to ``shape``."""
    features = F.interpolate(features, scale_factor=2.0, mode="nearest")
    for axis, size in enumerate(shape, 2):
        features = features.narrow(axis, 0, size)
    return features


def to_channels_last(features: Tensor) -> Tensor:
    """The same values, all channels of a voxel side by side in memory; 1-D features as they are."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return features.contiguous(memory_format=formats.get(features.ndim, torch.contiguous_format))
