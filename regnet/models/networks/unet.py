"""The U-Net of VoxelMorph, for any image size."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from regnet.models.networks.blocks import Merge, block, to_channels_last


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
        final: channels of further convolutions at the resolution where the decoder ends.
        channels_last: keep the channels of a voxel side by side in memory: the same result, faster on a CPU.
        checkpointing: forget the features inside each level and compute them again in the backward pass: less memory,
            more time.

    Raises:
        ValueError: ``ndim`` is not 1, 2 or 3, or the decoder has more levels than the encoder can feed.

    Source:
        Balakrishnan et al., IEEE TMI 2019, with strided convolutions for the pooling.
    """

    streams = 1  # how many encoders' features a level hands to the decoder

    def __init__(
        self,
        ndim: int,
        in_channels: int = 2,
        encoder: Sequence[int] = (16, 32, 32, 32),
        decoder: Sequence[int] = (32, 32, 16),
        final: Sequence[int] = (),
        channels_last: bool = True,
        checkpointing: bool = False,
    ) -> None:
        super().__init__()
        if not 0 <= len(decoder) < len(encoder):
            raise ValueError(
                f"an encoder of {len(encoder)} levels takes a decoder of at most {len(encoder) - 1}, got {len(decoder)}"
            )
        self.in_channels = in_channels
        self.channels_last = channels_last
        self.checkpointing = checkpointing
        self.stride = 2 ** (len(encoder) - 1 - len(decoder))
        self.down = nn.ModuleList(
            self.level(ndim, inside, outside, stride=1 if level == 0 else 2)
            for level, (inside, outside) in enumerate(pairwise([in_channels // self.streams, *encoder]))
        )
        widths = [self.streams * encoder[-1], *decoder]
        skips = [self.streams * width for width in encoder[-2::-1]]
        self.up = nn.ModuleList(
            Merge(ndim, inside, skip, outside) for (inside, outside), skip in zip(pairwise(widths), skips, strict=False)
        )
        widths = [widths[-1], *final]
        self.final = nn.Sequential(*(block(ndim, inside, outside) for inside, outside in pairwise(widths)))
        self.out_channels = widths[-1]

    def level(self, ndim: int, in_channels: int, out_channels: int, stride: int) -> nn.Module:
        """One level of the encoder."""
        return block(ndim, in_channels, out_channels, stride)

    def encode(self, moving: Tensor, fixed: Tensor) -> list[Tensor]:
        """Features of both images at each level, ``(N, streams * width, *ceil(spatial / 2**i))``."""
        return self.descend(torch.cat([moving, fixed], dim=1))

    def descend(self, images: Tensor) -> list[Tensor]:
        """What each level of the encoder makes of the one before."""
        levels = [to_channels_last(images) if self.channels_last else images]
        for level in self.down:
            levels.append(self.run(level, levels[-1]))
        return levels[1:]

    def run(self, part: Callable[..., Tensor], *features: Tensor) -> Tensor:
        """One level of the encoder or decoder, its inside kept or computed again."""
        if self.checkpointing and torch.is_grad_enabled():
            again: Tensor = checkpoint(part, *features, use_reentrant=False)
            return again
        return part(*features)

    def forward(self, moving: Tensor, fixed: Tensor) -> Tensor:
        """Features ``(N, out_channels, *ceil(spatial / stride))`` of two images ``(N, C, *spatial)``.

        Raises:
            ValueError: the images differ in shape, or their channels do not add up to ``in_channels``.
        """
        self.check(moving, fixed)
        return self.decode(self.encode(moving, fixed))

    def check(self, moving: Tensor, fixed: Tensor) -> None:
        """Refuse images that it cannot take; see ``forward``."""
        if moving.shape != fixed.shape:
            raise ValueError(f"moving and fixed must lie on one grid, got {tuple(moving.shape)}, {tuple(fixed.shape)}")
        if 2 * moving.shape[1] != self.in_channels:
            raise ValueError(
                f"the network takes {self.in_channels} channels for both images together, "
                f"got 2 x {moving.shape[1]}: set in_channels"
            )

    def decode(self, levels: Sequence[Tensor]) -> Tensor:
        """Features of ``forward`` from those of each level of the encoder, the finest first."""
        *skips, features = levels
        for part, skip in zip(self.up, skips[::-1][: len(self.up)], strict=True):
            features = self.run(part, features, skip)
        return self.run(self.final, features)
