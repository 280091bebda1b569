"""Pyramid: one velocity, from coarse to fine."""

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from regnet import ops
from regnet.models.compositions.scale import check_stages, shrunk_fields
from regnet.models.heads.field import to_grid
from regnet.models.model import Model


class Pyramid(Model):
    """Each level sees the moving image warped by the velocity found so far, and adds its share to that velocity.

    The result is one stationary velocity field, and its exponential, however many levels there are.

    Args:
        levels: models, from coarse to fine; what a level calls its displacement is its share of the velocity, so take
            a head that does not integrate. A single one serves all ``factors``, with the same weights.
        factors: at each level, how many voxels of the images one voxel covers along each axis. The velocity is
            integrated on the grid of the last one.
        steps: squarings of each integration.
        inverse: also integrate backwards in time.

    Raises:
        ValueError: a level is no model, there is not one factor a level, or a factor is no multiple of the next.

    Source:
        Mok and Chung, MICCAI 2020 (LapIRN), with all levels trained at once.
    """

    def __init__(
        self, levels: Sequence[nn.Module], factors: Sequence[int] = (4, 2, 1), steps: int = 7, inverse: bool = False
    ) -> None:
        super().__init__()
        self.factors = check_stages(levels, factors)
        if any(coarse % fine for coarse, fine in pairwise(self.factors)):
            raise ValueError(f"from coarse to fine, each factor must be a multiple of the next, got {self.factors}")
        self.levels = nn.ModuleList(levels)
        self.steps = steps
        self.inverse = inverse

    def fields(self, moving: Tensor, fixed: Tensor, **told: Tensor) -> dict[str, Tensor]:
        """``displacement`` and ``velocity`` (with ``inverse`` also ``inverse_displacement``) as of ``VelocityHead``."""
        velocity = self._share(0, moving, fixed, None, told)
        for number, (coarse, fine) in enumerate(pairwise(self.factors), 1):
            shape = [-(-size // fine) for size in fixed.shape[2:]]
            velocity = to_grid(velocity, shape, coarse // fine)
            velocity = velocity + self._share(number, moving, fixed, velocity, told)
        fields = {"displacement": self._integrate(velocity), "velocity": velocity}
        if self.inverse:
            fields["inverse_displacement"] = self._integrate(-velocity)
        return {name: to_grid(field, fixed.shape[2:], self.factors[-1]) for name, field in fields.items()}

    def _share(
        self, number: int, moving: Tensor, fixed: Tensor, velocity: Tensor | None, told: dict[str, Tensor]
    ) -> Tensor:
        """What a level adds to the velocity, on its own grid."""
        factor = self.factors[number]
        if velocity is not None:
            flow = to_grid(self._integrate(velocity), fixed.shape[2:], factor)
            moving = ops.warp(moving, flow, bound="replicate", extrapolate="edge")
        return shrunk_fields(self.levels, number, moving, fixed, factor, **told)["displacement"]

    def _integrate(self, velocity: Tensor) -> Tensor:
        return ops.integrate(velocity, steps=self.steps, bound="replicate")
