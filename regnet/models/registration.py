"""The plain model: a network, and a head that turns its features into a deformation."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from regnet.models.model import Model


class Network(Protocol):
    """What regnet asks of a network, yours included: any ``nn.Module`` that can be called like this.

    With a head behind it, it returns features ``(N, F, *spatial)`` (or at the stride that the head is told). Without a
    head it returns the displacement itself, ``(N, D, *spatial)`` in voxels, fixed to moving, channel ``d`` along
    spatial axis ``d``. One with an attribute ``regularity`` (least and greatest weight) is conditional: it is also
    called with the weight, ``(N,)``, as a third argument.
    """

    def __call__(self, moving: Tensor, fixed: Tensor) -> Tensor:
        """Compare two images ``(N, C, *spatial)`` that lie on one grid."""


class Registration(Model):
    """A network, and a head that turns its features into a deformation.

    Args:
        network: see ``Network``.
        head: called as ``head(features, shape)``, returns a dict with at least ``displacement``; ``None``: the network
            returns the displacement. One with an attribute ``probabilistic`` that is true is also called with the draw.
    """

    def __init__(self, network: nn.Module, head: nn.Module | None = None) -> None:
        super().__init__()
        self.network = network
        self.head = head

    @property
    def probabilistic(self) -> bool:
        """Whether the head draws."""
        return getattr(self.head, "probabilistic", False)

    def features(self, moving: Tensor, fixed: Tensor, regularity: Tensor | None = None) -> Tensor:
        """What the head gets."""
        told = () if regularity is None or not hasattr(self.network, "regularity") else (regularity,)
        features: Tensor = self.network(moving, fixed, *told)
        return features

    def spread(self, moving: Tensor, fixed: Tensor, draws: Sequence[int], **told: Tensor) -> Tensor:
        """How far drawn deformations lie apart; the network runs once.

        Args:
            moving, fixed: ``(N, C, *spatial)``, on one grid.
            draws: two or more numbers, as of ``forward``.
            told: ``regularity``, as of ``forward``.

        Returns:
            ``(N, D, *spatial)``: standard deviation of each component of the displacement, voxels.

        Raises:
            ValueError: the model is not probabilistic, or there are less than two draws.
        """
        if self.head is None or not self.probabilistic:
            raise ValueError("only a model with a probabilistic head knows how certain it is")
        if len(draws) < 2:
            raise ValueError(f"a standard deviation takes two draws at least, got {len(draws)}")
        features, shape = self.features(moving, fixed, **told), fixed.shape[2:]
        mean = squares = torch.zeros(())
        for count, draw in enumerate(draws, 1):  # Welford's running sums: only two fields are kept
            flow = self.head(features, shape, torch.full((len(fixed),), draw))["displacement"]
            step = flow - mean
            mean = mean + step / count
            squares = squares + step * (flow - mean)
        return (squares / (len(draws) - 1)).sqrt()

    def fields(self, moving: Tensor, fixed: Tensor, **told: Tensor) -> dict[str, Tensor]:
        """What the head says; see ``Model``.

        Raises:
            ValueError: there is no head, and the network does not return a displacement.
        """
        shape = fixed.shape[2:]
        features = self.features(moving, fixed, told.get("regularity"))
        if self.head is not None:
            return dict(self.head(features, shape, *([told.get("draw")] if self.probabilistic else [])))
        if features.shape[1:] != (len(shape), *shape):
            raise ValueError(
                f"without a head the network must return a displacement {(len(fixed), len(shape), *shape)}, got "
                f"{tuple(features.shape)}: a network that returns features needs a head"
            )
        return {"displacement": features.float()}
