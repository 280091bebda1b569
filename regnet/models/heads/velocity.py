"""Velocity head: a stationary velocity, integrated to a diffeomorphism."""

from collections.abc import Sequence

from torch import Tensor, nn

from regnet import ops
from regnet.models.heads.field import FieldLayer, to_grid


class VelocityHead(nn.Module):
    """Turn features into a stationary velocity field and integrate it by scaling and squaring.

    The velocity lives and is integrated on the grid of the features: a network of stride 2 gives integration at half
    the resolution, an eighth of the work in 3-D.

    Args:
        ndim: number of spatial axes.
        in_channels: channels of the features; None: they are the velocity itself, in their own voxels.
        stride: voxels of the image per node of the features, along each axis.
        steps: squarings of the integration.
        inverse: also integrate backwards in time.

    Source:
        Dalca et al., Medical Image Analysis 2019.
    """

    def __init__(
        self, ndim: int, in_channels: int | None, stride: int = 1, steps: int = 7, inverse: bool = False
    ) -> None:
        super().__init__()
        self.stride = stride
        self.steps = steps
        self.inverse = inverse
        self.field = FieldLayer(ndim, in_channels) if in_channels is not None else None

    def forward(self, features: Tensor, shape: Sequence[int]) -> dict[str, Tensor]:
        """Deform a grid of ``shape``.

        Args:
            features: ``(N, in_channels, *ceil(shape / stride))``.
            shape: spatial shape of the images.

        Returns:
            ``displacement``: ``(N, D, *shape)`` float32, voxels of the images, fixed to moving; ``velocity``: the same
            shape, voxels of the images per unit time, such that ``integrate(velocity)`` is the displacement; with
            ``inverse`` also ``inverse_displacement``, ``integrate(-velocity)``, from moving to fixed.

        Raises:
            ValueError: the features do not fit ``shape`` at this stride.
        """
        return self.integrated(features if self.field is None else self.field(features), shape)

    def integrated(self, velocity: Tensor, shape: Sequence[int]) -> dict[str, Tensor]:
        """What ``forward`` returns, of a velocity ``(N, D, *ceil(shape / stride))`` in voxels of its own grid."""
        fields = {"displacement": ops.integrate(velocity, steps=self.steps, bound="replicate"), "velocity": velocity}
        if self.inverse:
            fields["inverse_displacement"] = ops.integrate(-velocity, steps=self.steps, bound="replicate")
        return {name: to_grid(field, shape, self.stride) for name, field in fields.items()}
