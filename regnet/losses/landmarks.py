"""How far landmarks lie from where the field sends them."""

import torch
from torch import Tensor

from regnet import ops
from regnet.losses._differences import VoxelSize, check_flow, check_voxel_size
from regnet.losses._precision import full_precision
from regnet.losses.term import Tensors, Term, find, supplied


@full_precision
def landmark_distance(
    flow: Tensor,
    moving_points: Tensor,
    fixed_points: Tensor,
    voxel_size: VoxelSize = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Mean length of f + u(f) - m, f a landmark of the fixed image and m the same one of the moving image, in mm.

    The field points from fixed to moving, so it is read at the fixed landmark; trilinear, beyond the faces as at the
    border. Where the length is 0, so is the gradient.

    Args:
        flow: ``(N, D, *spatial)``, voxels; a displacement.
        moving_points, fixed_points: ``(N, K, D)``, voxels of the field's grid, one to one. A landmark with a NaN is
            left out: pad with it.
        voxel_size: mm; one, one per axis, or ``(N or 1, D)``.
        weight: of each landmark, >= 0 (a negative one counts as 0), ``(N or 1, K)``. It is not differentiated.

    Returns:
        0-d, >= 0: the mean over samples of each one's weighted mean; a sample without landmarks adds 0.

    Raises:
        ValueError: the shapes do not fit.
    """
    flow = check_flow(flow)
    fits = fixed_points.dim() == 3 and fixed_points.shape == moving_points.shape
    if not fits or (fixed_points.shape[0], fixed_points.shape[2]) != flow.shape[:2]:
        raise ValueError(
            f"landmarks must both be (N, K, D) for a flow {tuple(flow.shape)}: got {tuple(moving_points.shape)} "
            f"and {tuple(fixed_points.shape)}"
        )
    if weight is not None and weight.shape not in (fixed_points.shape[:2], (1, fixed_points.shape[1])):
        raise ValueError(
            f"weight must be (N or 1, K) for landmarks {tuple(fixed_points.shape)}: got {tuple(weight.shape)}"
        )
    known = (fixed_points.isfinite() & moving_points.isfinite()).all(2)
    fixed, moving = (torch.where(known[..., None], p, 0).to(flow.dtype) for p in (fixed_points, moving_points))
    n, k, ndim = fixed.shape
    places = fixed.transpose(1, 2).reshape(n, ndim, *[1] * (ndim - 1), k)
    displacement = ops.pull(flow, places, bound="replicate").flatten(2).transpose(1, 2)
    error = (fixed + displacement - moving) * check_voxel_size(voxel_size, flow)[:, None]
    square = error.square().sum(2)
    length = torch.where(square > 0, torch.where(square > 0, square, 1).sqrt(), 0)
    share = known.to(flow.dtype) if weight is None else known * weight.detach().to(flow.dtype).clamp(min=0)
    total = share.sum(1)
    return ((share * length).sum(1) / torch.where(total > 0, total, 1)).mean()


class Landmarks(Term):
    """:func:`landmark_distance` of the batch's landmarks."""

    choices = ("points",)
    unit = "mm"

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        points = supplied(self, batch, "moving_points"), supplied(self, batch, "fixed_points")
        return landmark_distance(
            find(self, outputs, "displacement"), *points, batch.get("spacing", 1.0), batch.get("points_weight")
        )
