"""Spline head: a cubic B-spline displacement given by control points."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regnet import ops
from regnet.models.heads.field import FieldLayer, check_stride


class ControlLayer(nn.Module):
    """Convolution from features to control points, ``stride`` voxels apart, in float32.

    A network's node ``k`` looks around voxel ``k * stride``, and there a control point lies. The points beyond the
    image, one before it and two behind it, repeat those at its border.

    Args:
        ndim: number of spatial axes.
        in_channels: channels of the features.
        stride: voxels of the image per node of the features, along each axis.
    """

    def __init__(self, ndim: int, in_channels: int, stride: int) -> None:
        super().__init__()
        self.ndim = ndim
        self.stride = stride
        self.field = FieldLayer(ndim, in_channels)

    def forward(self, features: Tensor, shape: Sequence[int]) -> dict[str, Tensor]:
        """Control points and how far apart they are.

        Returns:
            ``control``: ``(N, D, *(ceil(shape / stride) + 3))`` float32, voxels of the images;
            ``control_spacing``: ``(D,)``, voxels.

        Raises:
            ValueError: the features do not fit ``shape`` at this stride.
        """
        check_stride(features, shape, self.stride)
        control = F.pad(self.stride * self.field(features), [1, 2] * self.ndim, mode="replicate")
        return {"control": control, "control_spacing": torch.full((self.ndim,), float(self.stride))}


class SplineHead(nn.Module):
    """Turn features into a free-form deformation. Smooth at the scale of its control points; it can fold.

    Args:
        ndim: number of spatial axes.
        in_channels: channels of the features.
        stride: voxels between control points, which is the stride of the features.

    Source:
        Rueckert et al., IEEE TMI 1999; control points from a network: de Vos et al., Medical Image Analysis 2019.
    """

    def __init__(self, ndim: int, in_channels: int, stride: int = 4) -> None:
        super().__init__()
        self.control = ControlLayer(ndim, in_channels, stride)

    def forward(self, features: Tensor, shape: Sequence[int]) -> dict[str, Tensor]:
        """Deform a grid of ``shape``.

        Args:
            features: ``(N, in_channels, *ceil(shape / stride))``.
            shape: spatial shape of the images.

        Returns:
            ``displacement``: ``(N, D, *shape)`` float32, voxels of the images, fixed to moving; ``control`` and
            ``control_spacing`` of it, see ``ControlLayer``.

        Raises:
            ValueError: the features do not fit ``shape`` at this stride.
        """
        points: dict[str, Tensor] = self.control(features, shape)
        return {"displacement": ops.ffd(points["control"], shape, self.control.stride), **points}
