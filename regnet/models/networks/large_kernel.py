"""A U-Net whose encoder looks further at once."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regnet.models.convolution import convolution
from regnet.models.networks.blocks import SLOPE, block
from regnet.models.networks.unet import UNet

KERNEL = 5


class LargeKernelUNet(UNet):
    """U-Net with a block of large kernels at every level of the encoder. Arguments as ``UNet``.

    Source:
        Jia et al., "U-Net vs Transformer: is U-Net outdated in medical image registration?", MLMI 2022 (LKU-Net).
    """

    def level(self, ndim: int, in_channels: int, out_channels: int, stride: int) -> nn.Module:
        """A convolution that changes grid and width, and a block of large kernels."""
        return nn.Sequential(block(ndim, in_channels, out_channels, stride), LargeKernelBlock(ndim, out_channels))


class LargeKernelBlock(nn.Module):
    """Convolutions of 5, 3 and 1 nodes per axis and the features themselves, added up, and a leaky ReLU.

    All four are linear: their kernels are added first, and the features are convolved once.
    """

    def __init__(self, ndim: int, channels: int) -> None:
        super().__init__()
        self.wide, self.middle, self.narrow = (convolution(ndim, channels, channels, kernel=k) for k in (KERNEL, 3, 1))
        for branch in (self.wide, self.middle, self.narrow):
            nn.init.kaiming_normal_(branch.weight, a=SLOPE)
            branch.weight.data.mul_(0.5)  # the four add up

    def forward(self, features: Tensor) -> Tensor:
        """Features of the same shape ``(N, channels, *spatial)``."""
        ndim, channels = features.ndim - 2, features.shape[1]
        itself = torch.eye(channels, dtype=self.wide.weight.dtype, device=self.wide.weight.device)
        kernels = (self.middle.weight, self.narrow.weight, itself.view(channels, channels, *[1] * ndim))
        weight = self.wide.weight + sum(F.pad(k, [(KERNEL - k.shape[-1]) // 2] * 2 * ndim) for k in kernels)
        biases = [branch.bias for branch in (self.wide, self.middle, self.narrow) if branch.bias is not None]
        convolve = (F.conv1d, F.conv2d, F.conv3d)[ndim - 1]
        out = convolve(features, weight, torch.stack(biases).sum(0), padding=KERNEL // 2)
        return F.leaky_relu(out, SLOPE, inplace=True)
