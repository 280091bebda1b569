"""A U-Net that compares the features of both images itself."""

from itertools import product

import torch
from torch import Tensor
from torch.nn import functional as F

from regnet.models.networks.dual_stream import DualStreamUNet


class CorrelationUNet(DualStreamUNet):
    """A ``DualStreamUNet`` that also hands on how alike the features are, at each node and at its neighbours.

    The decoder need not learn to compare; so it learns to register in few steps. A level of stride ``s`` sees shifts of
    up to ``s`` voxels. Arguments as ``DualStreamUNet``.

    Source:
        Cost volumes: Sun et al., CVPR 2018 (PWC-Net). In registration: Kang et al., Medical Image Analysis 2022.
    """

    def handed_on(self, ndim: int, width: int) -> int:
        """Features of both images and a similarity for each shift."""
        return super().handed_on(ndim, width) + 3**ndim

    def encode(self, moving: Tensor, fixed: Tensor) -> list[Tensor]:
        """As ``DualStreamUNet``, and the similarities: ``(N, 2 * width + 3**D, *spatial)`` at each level."""
        finest, *levels = super().encode(moving, fixed)
        return [self._compared(finest) if self.stride == 1 else finest, *map(self._compared, levels)]

    def _compared(self, level: Tensor) -> Tensor:
        return torch.cat([level, correlation(*level.chunk(2, dim=1))], dim=1)


def correlation(moving: Tensor, fixed: Tensor) -> Tensor:
    """Correlation across the channels between each fixed node and the moving nodes around it.

    Args:
        moving, fixed: ``(N, C, *spatial)``, C > 1.

    Returns:
        ``(N, 3**D, *spatial)`` in [-1, 1], channel by channel for the shifts -1, 0, 1 along each axis, the last axis
        fastest; 0 outside the moving grid, and where a node has the same value in all channels.
    """
    moving, fixed = _standardised(moving), _standardised(fixed)
    ndim, shape = fixed.ndim - 2, fixed.shape[2:]
    around = F.pad(moving, [1] * 2 * ndim)
    scores = []
    for shift in product(range(3), repeat=ndim):
        there = around[(..., *(slice(begin, begin + n) for begin, n in zip(shift, shape, strict=True)))]
        scores.append((there * fixed).mean(1))
    return torch.stack(scores, dim=1)


def _standardised(features: Tensor) -> Tensor:
    """Mean 0 and deviation 1 over the channels of each node."""
    centred = features - features.mean(1, keepdim=True)
    return centred * (centred.square().mean(1, keepdim=True) + 1e-6).rsqrt()
