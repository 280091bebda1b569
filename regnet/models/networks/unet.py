"""The U-Net of VoxelMorph, for any image size."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from regnet.models.convolution import convolution


class UNet(nn.Module):
    """Convolutional encoder and decoder with skip connections, one convolution a level.

    Level ``i`` of the encoder works at stride ``2**i``: an axis of ``n`` voxels has ``ceil(n / 2**i)`` there. Going up,
    each level is repeated twice along every axis and cut to the size of its skip connection, so every size from one
    voxel upwards fits, and node ``k`` of stride ``s`` always covers voxels ``k * s`` to ``k * s + s - 1``.

    Args:
        ndim: number of spatial axes, 1 to 3.
        in_channels: channels of the moving and the fixed image together.
        encoder: channels of each level, from the full resolution down.
        decoder: channels of each level on the way up. One fewer than ``encoder`` ends at the full resolution; every
            further one left out doubles the stride of the features (``stride``).

    Raises:
        ValueError: ``ndim`` is not 1, 2 or 3, or the decoder has more levels than the encoder can feed.

    Source:
        Balakrishnan et al., IEEE TMI 2019, with strided convolutions for the pooling.
    """

    def __init__(
        self,
        ndim: int,
        in_channels: int = 2,
        encoder: Sequence[int] = (16, 32, 32, 32),
        decoder: Sequence[int] = (32, 32, 16),
    ) -> None:
        super().__init__()
        if not 0 <= len(decoder) < len(encoder):
            raise ValueError(
                f"an encoder of {len(encoder)} levels takes a decoder of at most {len(encoder) - 1}, got {len(decoder)}"
            )
        self.in_channels = in_channels
        self.out_channels = decoder[-1] if decoder else encoder[-1]
        self.stride = 2 ** (len(encoder) - 1 - len(decoder))
        widths = [in_channels, *encoder]
        self.down = nn.ModuleList(
            _block(ndim, inside, outside, stride=1 if level == 0 else 2)
            for level, (inside, outside) in enumerate(pairwise(widths))
        )
        widths = [encoder[-1], *decoder]
        skips = list(encoder[-2::-1])
        self.up = nn.ModuleList(
            _block(ndim, inside + skip, outside, stride=1)
            for (inside, outside), skip in zip(pairwise(widths), skips, strict=False)
        )

    def forward(self, moving: Tensor, fixed: Tensor) -> Tensor:
        """Features ``(N, out_channels, *ceil(spatial / stride))`` of two images ``(N, C, *spatial)``.

        Raises:
            ValueError: the images differ in shape, or their channels do not add up to ``in_channels``.
        """
        if moving.shape != fixed.shape:
            raise ValueError(f"moving and fixed must lie on one grid, got {tuple(moving.shape)}, {tuple(fixed.shape)}")
        if 2 * moving.shape[1] != self.in_channels:
            raise ValueError(
                f"the network takes {self.in_channels} channels for both images together, "
                f"got 2 x {moving.shape[1]}: set in_channels"
            )
        features = torch.cat([moving, fixed], dim=1)
        levels = []
        for block in self.down:
            features = block(features)
            levels.append(features)
        skips = levels[-2::-1]
        for block, skip in zip(self.up, skips, strict=False):
            features = block(torch.cat([_double(features, skip.shape[2:]), skip], dim=1))
        return features


def _block(ndim: int, in_channels: int, out_channels: int, stride: int) -> nn.Sequential:
    layer = convolution(ndim, in_channels, out_channels, stride)
    nn.init.kaiming_normal_(layer.weight, a=0.2)
    return nn.Sequential(layer, nn.LeakyReLU(0.2))


def _double(features: Tensor, shape: Sequence[int]) -> Tensor:
    """Each node repeated twice along every axis, cut to ``shape``."""
    for axis, size in enumerate(shape, start=2):
        features = features.repeat_interleave(2, dim=axis, output_size=2 * features.shape[axis]).narrow(axis, 0, size)
    return features
