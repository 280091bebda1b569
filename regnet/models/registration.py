"""Two images in, a deformation and the deformed moving image out."""

from typing import Protocol

import torch
from torch import Tensor, nn

from regnet import ops


class Network(Protocol):
    """What regnet asks of a network, yours included: any ``nn.Module`` that can be called like this.

    With a head behind it, it returns features ``(N, F, *spatial)`` (or at the stride that the head is told). Without a
    head it returns the displacement itself, ``(N, D, *spatial)`` in voxels, fixed to moving, channel ``d`` along
    spatial axis ``d``.
    """

    def __call__(self, moving: Tensor, fixed: Tensor) -> Tensor:
        """Compare two images ``(N, C, *spatial)`` that lie on one grid."""


class Registration(nn.Module):
    """A network, and a head that turns its features into a deformation.

    It holds no grid and no other buffer of an image's size: weights trained on one size serve every other.

    Args:
        network: see ``Network``.
        head: called as ``head(features, shape)``, returns a dict with at least ``displacement``; ``None``: the network
            returns the displacement.
    """

    def __init__(self, network: nn.Module, head: nn.Module | None = None) -> None:
        super().__init__()
        self.network = network
        self.head = head

    def forward(
        self,
        moving: Tensor,
        fixed: Tensor,
        view: Tensor | None = None,
        source: Tensor | None = None,
        matrix: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """Register ``moving`` to ``fixed``.

        Args:
            moving, fixed: ``(N, C, *spatial)``, prepared on one common grid.
            view: ``(N, 1, *spatial)``, 1 where the moving image was in view of that grid; ``None``: everywhere.
            source: ``(N, C + 1, *own)``, the moving image on its own voxels, and 1 where it has some (a batch is
                padded); it is deformed instead of ``moving``, so interpolated once. ``None``: ``moving`` and ``view``.
            matrix: ``(N, D, D + 1)``, voxels of the common grid -> voxels of ``source``.

        Returns:
            ``displacement``: ``(N, D, *spatial)`` float32, voxels, ``moving(p + u(p)) ~ fixed(p)``; ``moved`` and
            ``moved_view``: image and view warped by it, 0 out of view; and whatever else the head gives
            (``velocity``).

        Raises:
            ValueError: the network or the head does not give one displacement per voxel.
        """
        shape = fixed.shape[2:]
        features = self.network(moving, fixed)
        outputs = {"displacement": features.float()} if self.head is None else dict(self.head(features, shape))
        flow = outputs["displacement"]
        if flow.shape != (fixed.shape[0], len(shape), *shape):
            raise ValueError(
                f"images of shape {tuple(fixed.shape)} need a displacement of shape "
                f"{(fixed.shape[0], len(shape), *shape)}, got {tuple(flow.shape)}"
                + (": a network that returns features needs a head" if self.head is None else "")
            )
        if source is None:
            source = torch.cat([moving, torch.ones_like(moving[:, :1]) if view is None else view], dim=1)
        moved = ops.warp(source, flow, bound="replicate", extrapolate="edge", matrix=matrix)
        return {**outputs, "moved": moved[:, :-1], "moved_view": moved[:, -1:]}
