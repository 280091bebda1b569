"""What every dense head shares: the last convolution, and the way from its grid to the images'."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from regnet import ops
from regnet.models.convolution import convolution


class FieldLayer(nn.Module):
    """Convolution from features to a vector field that starts near zero and always runs in float32.

    Under autocast a bfloat16 field near 16 voxels would have steps of 1/8 voxel, so autocast ends here.

    Args:
        ndim: number of spatial axes, and of components of the field.
        in_channels: channels of the features.
    """

    def __init__(self, ndim: int, in_channels: int) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.convolution = convolution(ndim, in_channels, ndim)
        nn.init.normal_(self.convolution.weight, std=1e-5)
        self.convolution.bias = nn.Parameter(torch.zeros(ndim))

    def forward(self, features: Tensor) -> Tensor:
        """Field ``(N, D, *spatial)`` float32 of features ``(N, in_channels, *spatial)``."""
        if features.shape[1] != self.in_channels:
            raise ValueError(f"the head takes {self.in_channels} channels, the network gives {features.shape[1]}")
        with torch.autocast(features.device.type, enabled=False):
            field: Tensor = self.convolution(features.float())
        return field.contiguous()  # whatever the layout of the features: the operators read along the last axis


def to_grid(field: Tensor, shape: Sequence[int], stride: int) -> Tensor:
    """Resample a field from the grid of the features to the grid of the images, in voxels of the images.

    Args:
        field: ``(N, D, *ceil(shape / stride))``, voxels of its own grid, whose node ``k`` covers ``stride`` voxels.
        shape: spatial shape of the images.
        stride: voxels of the images per node.

    Returns:
        ``(N, D, *shape)``.

    Raises:
        ValueError: the shape of the field is not ``ceil(shape / stride)``.
    """
    check_stride(field, shape, stride)
    if stride == 1:
        return field
    fine = ops.resize_flow(field, factor=stride, bound="replicate")
    for axis, size in enumerate(shape, 2):
        fine = fine.narrow(axis, 0, size)
    return fine


def check_stride(features: Tensor, shape: Sequence[int], stride: int) -> None:
    """Refuse features ``(N, F, *spatial)`` whose shape is not ``ceil(shape / stride)``.

    Raises:
        ValueError: it is not.
    """
    expected = [-(-size // stride) for size in shape]
    if list(features.shape[2:]) != expected:
        raise ValueError(
            f"features of shape {tuple(features.shape[2:])} do not fit images of shape {tuple(shape)} at stride "
            f"{stride}: expected {tuple(expected)}; set the head's stride to the network's"
        )
