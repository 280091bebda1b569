"""Displacement head: the field is what the last convolution says."""

from collections.abc import Sequence

from torch import Tensor, nn

from regnet.models.heads.field import FieldLayer, to_grid


class DisplacementHead(nn.Module):
    """Turn features into a displacement field. Simple and fast; nothing keeps the map from folding.

    Args:
        ndim: number of spatial axes.
        in_channels: channels of the features.
        stride: voxels of the image per node of the features, along each axis.
    """

    def __init__(self, ndim: int, in_channels: int, stride: int = 1) -> None:
        super().__init__()
        self.stride = stride
        self.field = FieldLayer(ndim, in_channels)

    def forward(self, features: Tensor, shape: Sequence[int]) -> dict[str, Tensor]:
        """Deform a grid of ``shape``.

        Args:
            features: ``(N, in_channels, *ceil(shape / stride))``.
            shape: spatial shape of the images.

        Returns:
            ``displacement``: ``(N, D, *shape)`` float32, voxels of the images, fixed to moving.

        Raises:
            ValueError: the features do not fit ``shape`` at this stride.
        """
        return {"displacement": to_grid(self.field(features), shape, self.stride)}
