"""Probabilistic velocity head: a normal distribution of stationary velocities."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from regnet.models.heads.field import FieldLayer
from regnet.models.heads.velocity import VelocityHead

_LOG_VARIANCE = -10.0  # at first, as in voxelmorph: nearly no noise until the network knows something


class ProbabilisticVelocityHead(VelocityHead):
    """Turn features into mean and variance of a stationary velocity, and integrate the mean or one that is drawn.

    Every node and component is drawn by itself; train with ``regnet.losses.KL``, whose prior is smooth. Arguments as
    ``VelocityHead``.

    Source:
        Dalca et al., Medical Image Analysis 2019.
    """

    probabilistic = True

    def __init__(self, ndim: int, in_channels: int, stride: int = 1, steps: int = 7, inverse: bool = False) -> None:
        super().__init__(ndim, in_channels, stride, steps, inverse)
        self.log_variance = FieldLayer(ndim, in_channels)
        nn.init.constant_(self.log_variance.convolution.bias, _LOG_VARIANCE)  # type: ignore[arg-type]

    def forward(self, features: Tensor, shape: Sequence[int], draw: Tensor | None = None) -> dict[str, Tensor]:
        """Deform a grid of ``shape``.

        Args:
            features: ``(N, in_channels, *ceil(shape / stride))``.
            shape: spatial shape of the images.
            draw: ``(N,)`` integers, each the seed of a sample's noise; ``None``: the mean itself.

        Returns:
            As ``VelocityHead``, of the velocity drawn; ``mean`` and ``log_variance`` of its distribution
            ``(N, D, *ceil(shape / stride))``, in voxels and log of voxels² of the features' grid.

        Raises:
            ValueError: the features do not fit ``shape`` at this stride.
        """
        assert self.field is not None  # it is always made, with in_channels
        mean, log_variance = self.field(features), self.log_variance(features)
        velocity = mean if draw is None else mean + (log_variance / 2).exp() * _noise(mean, draw)
        return {**self.integrated(velocity, shape), "mean": mean, "log_variance": log_variance}


def _noise(like: Tensor, draw: Tensor) -> Tensor:
    """Standard normal numbers, those of a sample a function of its seed and of nothing that ran before."""
    generators = (torch.Generator(like.device).manual_seed(int(seed)) for seed in draw)
    return torch.stack([torch.randn(like.shape[1:], generator=each, device=like.device) for each in generators])
