"""Resample images and fields onto a grid of another size over the same field of view."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from regnet.ops import _check
from regnet.ops.fields import warp
from regnet.ops.options import Bound, Order

_ANCHORS = ("edges", "centers")


def resize(
    image: Tensor,
    shape: Sequence[int] | None = None,
    factor: float | Sequence[float] | None = None,
    anchor: str = "edges",
    order: Order = 1,
    bound: Bound = "dct2",
    prefilter: bool = True,
) -> Tensor:
    """Interpolate an image on a finer or coarser grid.

    No smoothing is done, so that shrinking takes samples.

    Args:
        image: ``(N, C, *in)``.
        shape, factor: exactly one of them: the new sizes, or what the old ones are multiplied by (and rounded).
        anchor: what stays in place: the outer "edges" of the border voxels, or their "centers".
        order, bound, prefilter: as :func:`regnet.ops.warp`.

    Returns:
        ``(N, C, *shape)``.

    Raises:
        ValueError: not an image, both or none of shape and factor, or an unknown anchor.
    """
    ndim = _check.image("image", image)
    sizes = _sizes(image, shape, factor, ndim)
    scales = _scales(image.shape[2:], sizes, anchor)
    matrix = torch.zeros(1, ndim, ndim + 1, dtype=torch.float64 if image.dtype == torch.float64 else torch.float32)
    for d, scale in enumerate(scales):
        matrix[0, d, d] = scale
        matrix[0, d, ndim] = (scale - 1) / 2 if anchor == "edges" else 0.0
    flow = matrix.new_zeros(1).to(image.device).expand(1, ndim, *sizes)  # one number: nothing is materialised
    return warp(image, flow, order, bound, matrix=matrix.to(image.device), prefilter=prefilter)


def resize_flow(
    flow: Tensor,
    shape: Sequence[int] | None = None,
    factor: float | Sequence[float] | None = None,
    anchor: str = "edges",
    order: Order = 1,
    bound: Bound = "dct2",
    prefilter: bool = True,
) -> Tensor:
    """Resize a field in voxels: resampled as :func:`resize`, and each channel rescaled to voxels of the new grid.

    Channel ``d`` is multiplied by ``n_out / n_in`` (edges) or ``(n_out - 1) / (n_in - 1)`` (centers) of its axis.
    A field in other units (mm, or normalised to the size) must not be rescaled: use :func:`resize`.
    """
    ndim = _check.field("flow", flow)
    sizes = _sizes(flow, shape, factor, ndim)
    gains = [1 / scale if scale else 1.0 for scale in _scales(flow.shape[2:], sizes, anchor)]
    _, dtype = _check.together(flow=flow)
    gain = torch.tensor(gains, dtype=dtype, device=flow.device).reshape(1, ndim, *[1] * ndim)
    return (resize(flow.to(dtype), sizes, None, anchor, order, bound, prefilter) * gain).to(flow.dtype)


def _sizes(image: Tensor, shape: Sequence[int] | None, factor: float | Sequence[float] | None, ndim: int) -> list[int]:
    if (shape is None) == (factor is None):
        raise ValueError(f"give exactly one of shape and factor, got shape={shape!r}, factor={factor!r}")
    if shape is not None:
        sizes = _check.shape("shape", shape, ndim)
        if 0 in sizes:
            raise ValueError(f"shape must have at least one voxel an axis, got {tuple(sizes)}")
        return sizes
    factors = [factor] * ndim if isinstance(factor, (int, float)) else list(factor or [])
    if len(factors) != ndim or not all(0 < f < math.inf for f in factors):
        raise ValueError(f"factor must be positive and finite, one or {ndim} (one per axis), got {factor!r}")
    return [max(1, round(n * f)) for n, f in zip(image.shape[2:], factors, strict=True)]


def _scales(old: Sequence[int], new: Sequence[int], anchor: str) -> list[float]:
    """Old voxels per new voxel."""
    if anchor not in _ANCHORS:
        raise ValueError(f'anchor must be "edges" or "centers", got {anchor!r}')
    if anchor == "edges":
        return [a / b for a, b in zip(old, new, strict=True)]
    return [(a - 1) / (b - 1) if b > 1 else 0.0 for a, b in zip(old, new, strict=True)]
