"""A U-Net that looks at each image by itself first."""

import torch
from torch import Tensor

from regnet.models.networks.unet import UNet


class DualStreamUNet(UNet):
    """One encoder, the same for both images, makes a pyramid of features of each; the decoder compares them.

    Arguments as ``UNet``; ``encoder`` counts the channels of one image. Since the encoder never sees the other image,
    its features of an image are the same in every pair.

    Source:
        The two-stream pyramid encoder of Kang et al., Medical Image Analysis 2022 (Dual-PRNet++), with the decoder of
        the U-Net; warping between the levels is what ``Pyramid`` does.
    """

    streams = 2

    def encode(self, moving: Tensor, fixed: Tensor) -> list[Tensor]:
        """Features of both images side by side at each level, ``(N, 2 * width, *ceil(spatial / 2**i))``."""
        return [torch.cat(level.chunk(2), dim=1) for level in self.descend(torch.cat([moving, fixed]))]
