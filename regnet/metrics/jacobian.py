"""Regularity of a map, from its Jacobian determinant.

The determinant is that of the map p -> p + flow(p) from the fixed into the moving image: identity included, central
differences, one-sided on the faces. It is a ratio of volumes, moving over fixed: **below 1 the structure was enlarged**
on its way from the moving into the fixed image, above 1 it was shrunk; at 0 and below the map folds. Folding and SDlogJ
are the same whether or not an affine map (without mirroring) comes on top; the percentiles are scaled by it.
"""

import math

import numpy as np
import torch
from torch import Tensor

from regnet import ops
from regnet.metrics._mask import check_mask, inside, wide
from regnet.metrics._slabs import slabs


def folding_fraction(flow: Tensor, mask: Tensor | None = None) -> float:
    """Fraction of voxels at which the map folds: determinant <= 0.

    Args:
        flow: ``(N, D, *spatial)``, voxels, on the fixed grid.
        mask: ``(N or 1, 1, *spatial)``; voxels with a value above 0 count. None: all of the grid, which flatters, since
            a brain is a fifth of its grid.

    Returns:
        In [0, 1]; NaN if the mask is empty, or the field NaN in it.

    Raises:
        ValueError: ``mask`` does not fit ``flow``.
    """
    return _folding(_determinant(flow), mask)


def sdlogj(flow: Tensor, mask: Tensor | None = None, offset: float = 0.0, margin: int = 0) -> float:
    """Standard deviation of the logarithm of the Jacobian determinant.

    Learn2Reg's figure is ``sdlogj(flow, offset=3, margin=2)``, with the fixed mask where the task has masks. Its script
    and the papers that copy it add 3 to the determinant, which makes the figure some four times smaller.

    Args:
        flow: ``(N, D, *spatial)``, voxels, on the fixed grid.
        mask: ``(N or 1, 1, *spatial)``; voxels with a value above 0 count.
        offset: added to the determinant.
        margin: how many voxels at each face are left out.

    Returns:
        Population standard deviation; NaN where no voxel is left.

    Raises:
        ValueError: ``mask`` does not fit ``flow``.

    Source:
        Leow et al., IEEE Transactions on Medical Imaging 2007; https://github.com/MDL-UzL/L2R
    """
    check_mask(mask, flow)
    core = _core(flow, margin)
    return _deviation(_logarithm(_determinant(flow)[core] + offset), None if mask is None else mask[core])


def jacobian_statistics(flow: Tensor, *masks: Tensor | None) -> list[dict[str, float]]:
    """Regularity inside several masks, from one computation of the determinant.

    Args:
        flow: ``(N, D, *spatial)``, voxels, on the fixed grid.
        masks: each ``(N or 1, 1, *spatial)``, or None for the whole grid.

    Returns:
        For each mask ``folding`` (:func:`folding_fraction`), ``sdlogj``, ``sdlogj_learn2reg`` (3 added, two voxels left
        out at each face) and ``p5``, ``p95``: percentiles of the determinant.

    Raises:
        ValueError: a mask does not fit ``flow``.
    """
    for mask in masks:
        check_mask(mask, flow)
    determinant = _determinant(flow)
    logarithm = _logarithm(determinant)
    core = _core(flow, 2)
    official = _logarithm(determinant[core] + 3)
    return [
        {
            "folding": _folding(determinant, mask),
            "sdlogj": _deviation(logarithm, mask),
            "sdlogj_learn2reg": _deviation(official, None if mask is None else mask[core]),
            **_percentiles(determinant, mask),
        }
        for mask in masks
    ]


def log_jacobian_determinant(flow: Tensor, offset: float = 0.0) -> Tensor:
    """Logarithm of the Jacobian determinant, clipped to [1e-9, 1e9] first so that folds stay finite.

    Args:
        flow: ``(N, D, *spatial)``, voxels, on the fixed grid.
        offset: added to the determinant before clipping.

    Returns:
        ``(N, 1, *spatial)``; negative where a structure of the moving image was enlarged.
    """
    return _logarithm(ops.jacobian_determinant(wide(flow)) + offset)


def _determinant(flow: Tensor) -> Tensor:
    """:func:`regnet.ops.jacobian_determinant`, some rows at a time: its many fields stay in the processor's cache."""
    parts = []
    for start, stop, low, high in slabs(flow):
        parts.append(ops.jacobian_determinant(wide(flow.detach()[:, :, low:high]))[:, :, start - low : stop - low])
    return torch.cat(parts, 2)


def _core(flow: Tensor, margin: int) -> tuple[slice, ...]:
    """What is left of a field without so many voxels at each face."""
    return (slice(None), slice(None), *(slice(margin, max(margin, n - margin)) for n in flow.shape[2:]))


def _logarithm(determinant: Tensor) -> Tensor:
    return determinant.clamp(1e-9, 1e9).log_()


def _folding(determinant: Tensor, mask: Tensor | None) -> float:
    values = inside(determinant, mask)
    return float(torch.where(values.isnan(), values, (values <= 0).to(values)).double().mean())


def _deviation(logarithm: Tensor, mask: Tensor | None) -> float:
    values = inside(logarithm, mask).double()
    return float(values.std(correction=0)) if values.numel() else math.nan


def _percentiles(determinant: Tensor, mask: Tensor | None) -> dict[str, float]:
    values = inside(determinant, mask).cpu().numpy()
    low, high = np.percentile(values, (5, 95)) if values.size else (math.nan, math.nan)
    return {"p5": float(low), "p95": float(high)}
