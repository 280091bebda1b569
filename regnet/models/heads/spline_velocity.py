"""Spline velocity head: a stationary velocity given by control points, integrated to a diffeomorphism."""

from collections.abc import Sequence

from torch import Tensor, nn

from regnet import ops
from regnet.models.heads.spline import ControlLayer


class SplineVelocityHead(nn.Module):
    """Turn features into a cubic B-spline velocity and integrate it by scaling and squaring.

    Few numbers give a velocity as smooth as its control points are far apart; it is integrated at full resolution.

    Args:
        ndim: number of spatial axes.
        in_channels: channels of the features.
        stride: voxels between control points, which is the stride of the features.
        steps: squarings of the integration.
        inverse: also integrate backwards in time.

    Source:
        Qiu et al., MIDL 2021 (MIDIR).
    """

    def __init__(self, ndim: int, in_channels: int, stride: int = 4, steps: int = 7, inverse: bool = False) -> None:
        super().__init__()
        self.steps = steps
        self.inverse = inverse
        self.control = ControlLayer(ndim, in_channels, stride)

    def forward(self, features: Tensor, shape: Sequence[int]) -> dict[str, Tensor]:
        """Deform a grid of ``shape``.

        Args:
            features: ``(N, in_channels, *ceil(shape / stride))``.
            shape: spatial shape of the images.

        Returns:
            ``displacement`` and ``velocity`` (with ``inverse`` also ``inverse_displacement``) as of ``VelocityHead``;
            ``control`` and ``control_spacing`` of the velocity, see ``ControlLayer``.

        Raises:
            ValueError: the features do not fit ``shape`` at this stride.
        """
        points: dict[str, Tensor] = self.control(features, shape)
        velocity = ops.ffd(points["control"], shape, self.control.stride)
        displacement = ops.integrate(velocity, steps=self.steps, bound="replicate")
        fields = {"displacement": displacement, "velocity": velocity, **points}
        if self.inverse:
            fields["inverse_displacement"] = ops.integrate(-velocity, steps=self.steps, bound="replicate")
        return fields
