"""How far a field is from the true one."""

from typing import Any

import torch
from torch import Tensor

from regnet.losses._differences import VoxelSize, check_flow, check_voxel_size
from regnet.losses._precision import full_precision
from regnet.losses._weights import check_mask, weighted_mean
from regnet.losses.term import Tensors, Term, find, supplied


@full_precision
def endpoint_error(flow: Tensor, truth: Tensor, voxel_size: VoxelSize = 1.0, mask: Tensor | None = None) -> Tensor:
    """Mean length of u - v, u the field and v the true one, in mm. Where the length is 0, so is the gradient.

    Args:
        flow, truth: ``(N, D, *spatial)``, voxels. Where ``truth`` is NaN nobody knows it: left out.
        voxel_size: mm; one, one per axis, or ``(N or 1, D)``.
        mask: weight of each voxel, >= 0, ``(N or 1, 1, *spatial)``. It is not differentiated.

    Returns:
        0-d, >= 0: the mean over samples of each one's mean over its mask; a sample without truth adds 0.

    Raises:
        ValueError: the shapes do not fit.
    """
    check_flow(flow)
    if truth.shape != flow.shape:
        raise ValueError(f"a flow {tuple(flow.shape)} needs a truth of its shape: got {tuple(truth.shape)}")
    mask = check_mask(mask, flow[:, :1], "flows")
    known = truth.isfinite().all(1, keepdim=True)
    size = check_voxel_size(voxel_size, flow).reshape(-1, flow.shape[1], *[1] * (flow.dim() - 2))
    square = ((flow - torch.where(known, truth, 0).to(flow.dtype)) * size).square().sum(1, keepdim=True)
    zero = square == 0  # where the root has no slope; NaN stays NaN
    length = torch.where(zero, 0, torch.where(zero, 1, square).sqrt())
    return weighted_mean(length, known if mask is None else known * mask)


class EndPointError(Term):
    """:func:`endpoint_error` to the batch's true ``flow``, where the fixed image is labelled, or in its mask."""

    choices = ("displacement",)
    unit = "mm"

    def __init__(self, **common: Any) -> None:
        super().__init__(**common)
        if self.level or self.both_directions:
            raise ValueError("EndPointError: the true field is known as it is: no level, no other direction")

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        mask = batch["fixed_labels"] > 0 if "fixed_labels" in batch else batch.get("fixed_mask")
        truth = supplied(self, batch, "flow")
        return endpoint_error(find(self, outputs, "displacement"), truth, batch.get("spacing", 1.0), mask)
