"""Affine head: one matrix for the whole image, affine or rigid."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from regnet import ops
from regnet.models.heads.field import FieldLayer, check_stride


class AffineHead(nn.Module):
    """Turn features into one affine or rigid map, by the exponential of a matrix.

    The features become a velocity field; the affine velocity ``v(p) = L (p - c) + t`` nearest to it (least squares; for
    a rigid map among those with ``L`` antisymmetric) is integrated in closed form. So there is no layer of a fixed
    size, the map is invertible, and never a reflection.

    Args:
        ndim: number of spatial axes, 2 or 3 (1: no rotation).
        in_channels: channels of the features.
        stride: voxels of the image per node of the features, along each axis.
        rigid: only rotate and shift, which asks for voxels of one size along all axes.
        inverse: also give the inverse.

    Source:
        Maps as exponentials: Arsigny et al., "Polyrigid and polyaffine transformations", Medical Image Analysis 2005.
    """

    def __init__(
        self, ndim: int, in_channels: int, stride: int = 1, rigid: bool = False, inverse: bool = False
    ) -> None:
        super().__init__()
        self.stride = stride
        self.rigid = rigid
        self.inverse = inverse
        self.field = FieldLayer(ndim, in_channels)

    def forward(self, features: Tensor, shape: Sequence[int]) -> dict[str, Tensor]:
        """Deform a grid of ``shape``.

        Args:
            features: ``(N, in_channels, *ceil(shape / stride))``.
            shape: spatial shape of the images.

        Returns:
            ``displacement``: ``(N, D, *shape)`` float32, voxels of the images, fixed to moving; ``matrix``:
            ``(N, D, D + 1)``, the map from fixed to moving voxels; with ``inverse`` also ``inverse_displacement``.

        Raises:
            ValueError: the features do not fit ``shape`` at this stride.
        """
        check_stride(features, shape, self.stride)
        velocity = self.field(features) * self.stride
        with torch.autocast(velocity.device.type, enabled=False):
            generator, centre = nearest_affine(velocity, self.stride, self.rigid)
            matrix = exponential(generator, centre)
            outputs = {"displacement": affine_displacement(matrix, shape), "matrix": matrix}
            if self.inverse:
                outputs["inverse_displacement"] = affine_displacement(exponential(-generator, centre), shape)
        return outputs


def nearest_affine(velocity: Tensor, stride: int, rigid: bool) -> tuple[Tensor, Tensor]:
    """The affine velocity nearest to a field, by least squares over its nodes.

    Args:
        velocity: ``(N, D, *spatial)``, voxels; node ``k`` lies in the middle of the ``stride`` voxels it covers.
        stride: voxels per node.
        rigid: only rotations and shifts.

    Returns:
        ``(N, D, D + 1)``: ``L`` and ``t`` of ``v(p) = L (p - c) + t``; and ``c`` ``(D,)``, voxels, the middle.
    """
    axes = tuple(range(2, velocity.ndim))
    ends = velocity.new_tensor([size - 1 for size in velocity.shape[2:]])
    grid = (
        ops.identity(velocity.shape[2:], device=velocity.device) - (ends / 2).view(1, -1, *[1] * len(axes))
    ) * stride
    # Around the middle of a box the coordinates are uncorrelated, so that each entry is a quotient of two sums.
    moments = torch.stack([(velocity * grid[:, d : d + 1]).sum(axes) for d in range(len(axes))], dim=2)
    spread = grid.square().sum(axes)[0]
    if rigid:
        moments, spread = moments - moments.mT, spread[:, None] + spread
    linear = moments / spread.clamp(min=1.0)  # an axis of one node has no spread, and no moment
    return torch.cat([linear, velocity.mean(axes).unsqueeze(2)], dim=2), (ends * stride + stride - 1) / 2


def exponential(generator: Tensor, centre: Tensor) -> Tensor:
    """The map after time 1 of an affine velocity, see ``nearest_affine``: ``(N, D, D + 1)``, voxel to voxel."""
    full = torch.linalg.matrix_exp(nn.functional.pad(generator, [0, 0, 0, 1]))[:, :-1]
    linear, shift = full[..., :-1], full[..., -1]
    return torch.cat([linear, (centre + shift - linear @ centre).unsqueeze(2)], dim=2)


def affine_displacement(matrix: Tensor, shape: Sequence[int]) -> Tensor:
    """``u(p) = A p + b - p``, ``(N, D, *shape)`` voxels, of the matrix ``(N, D, D + 1)`` that holds A and b."""
    ndim = len(shape)
    grid = ops.identity(shape, dtype=matrix.dtype, device=matrix.device)[0]
    linear = matrix[:, :, :ndim] - torch.eye(ndim, dtype=matrix.dtype, device=matrix.device)
    return (linear @ grid.flatten(1) + matrix[:, :, ndim:]).unflatten(2, tuple(shape))
