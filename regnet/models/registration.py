"""The plain model: a network, and a head that turns its features into a deformation."""

from typing import Protocol

from torch import Tensor, nn

from regnet.models.model import Model


class Network(Protocol):
    """What regnet asks of a network, yours included: any ``nn.Module`` that can be called like this.

    With a head behind it, it returns features ``(N, F, *spatial)`` (or at the stride that the head is told). Without a
    head it returns the displacement itself, ``(N, D, *spatial)`` in voxels, fixed to moving, channel ``d`` along
    spatial axis ``d``.
    """

    def __call__(self, moving: Tensor, fixed: Tensor) -> Tensor:
        """Compare two images ``(N, C, *spatial)`` that lie on one grid."""


class Registration(Model):
    """A network, and a head that turns its features into a deformation.

    Args:
        network: see ``Network``.
        head: called as ``head(features, shape)``, returns a dict with at least ``displacement``; ``None``: the network
            returns the displacement.
    """

    def __init__(self, network: nn.Module, head: nn.Module | None = None) -> None:
        super().__init__()
        self.network = network
        self.head = head

    def features(self, moving: Tensor, fixed: Tensor) -> Tensor:
        """What the head gets."""
        features: Tensor = self.network(moving, fixed)
        return features

    def fields(self, moving: Tensor, fixed: Tensor) -> dict[str, Tensor]:
        """What the head says; see ``Model``.

        Raises:
            ValueError: there is no head, and the network does not return a displacement.
        """
        shape = fixed.shape[2:]
        features = self.features(moving, fixed)
        if self.head is not None:
            return dict(self.head(features, shape))
        if features.shape[1:] != (len(shape), *shape):
            raise ValueError(
                f"without a head the network must return a displacement {(len(fixed), len(shape), *shape)}, got "
                f"{tuple(features.shape)}: a network that returns features needs a head"
            )
        return {"displacement": features.float()}
