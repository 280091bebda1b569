"""Penalties on the Jacobian determinant of the map p + u(p): 1 keeps volumes, 0 and below folds."""

from typing import Any

import torch
from torch import Tensor

from regnet import ops
from regnet.losses._precision import full_precision
from regnet.losses._weights import check_field, weighted_mean
from regnet.losses.term import FieldTerm, Tensors, find


@full_precision
def folding_penalty(flow: Tensor, mask: Tensor | None = None, margin: float = 0.0) -> Tensor:
    """Mean of max(margin - det J, 0), J the Jacobian of p + u(p): 0 where nothing folds.

    Central differences, one-sided at the faces, which do not see a field that changes sign from voxel to voxel: keep
    a smoothness term beside it.

    Args:
        flow: ``(N, D, *spatial)``, voxels; a displacement. det J does not depend on the voxel size.
        mask: weight of each voxel, >= 0, ``(N or 1, 1, *spatial)``. It is not differentiated. What is not finite
            where it is 0 is not counted, nor is a determinant made of that.
        margin: determinant below which a voxel is penalised.

    Returns:
        0-d, >= 0, no unit, reduced as :func:`regnet.losses.mse`.

    Raises:
        ValueError: ``flow`` has not one channel per spatial axis, or the mask does not fit.

    Source:
        Mok and Chung, CVPR 2020, with a margin.
    """
    determinant, weight = _determinant(flow, mask)
    return weighted_mean(torch.relu(margin - determinant), weight)


@full_precision
def log_jacobian(flow: Tensor, mask: Tensor | None = None, floor: float = 0.05) -> Tensor:
    """Mean of (log det J)²: growth and shrinkage by one factor cost the same.

    Below ``floor`` the logarithm is continued by its tangent, so that a fold costs much and has a gradient.

    Arguments, reduction and errors as of :func:`folding_penalty`; the value has no unit.

    Source:
        Ashburner et al., Human Brain Mapping 1999, has the penalty; the tangent is ours.
    """
    if not floor > 0:
        raise ValueError(f"floor must be a positive determinant: got {floor}")
    determinant, weight = _determinant(flow, mask)
    kept = determinant.clamp(min=floor)
    logarithm = kept.log() + (determinant - kept) / floor
    return weighted_mean(logarithm.square(), weight)


def _determinant(flow: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """The determinant, and each voxel's weight: 0 also where it is made of what the mask hides, which is not finite."""
    kept, mask = check_field(flow, mask)
    if mask is None:
        return ops.jacobian_determinant(kept), None
    hidden = (kept != flow).any(1, keepdim=True)
    reached = hidden.clone()
    for axis, size in enumerate(hidden.shape[2:], start=2):
        for here, there in ((0, 1), (1, 0)):
            reached.narrow(axis, here, size - 1).logical_or_(hidden.narrow(axis, there, size - 1))
    return ops.jacobian_determinant(kept), mask * ~reached


class Folding(FieldTerm):
    """:func:`folding_penalty` of the displacement."""

    choices = ("displacement",)

    def __init__(self, margin: float = 0.0, **common: Any) -> None:
        super().__init__(**common)
        self.margin = margin

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        return folding_penalty(find(self, outputs, self.on), margin=self.margin)


class LogJacobian(FieldTerm):
    """:func:`log_jacobian` of the displacement."""

    choices = ("displacement",)

    def __init__(self, floor: float = 0.05, **common: Any) -> None:
        super().__init__(**common)
        self.floor = floor

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        return log_jacobian(find(self, outputs, self.on), floor=self.floor)
