"""An image on another grid, through world space."""

from typing import Any

import torch
from torch import Tensor

from regnet import ops
from regnet.spatial.grid import Grid, matrix

_BLOCK = 1 << 22  # voxels filtered at a time


def resample(image: Tensor, source: Grid, target: Grid, order: int = 1, background: float = 0.0) -> Tensor:
    """Sample an image on another grid; no smoothing, so going much coarser needs some before.

    Args:
        image: ``(N, C, *source.shape)``; integers are taken as float32.
        source, target: where the image lies, and where it is wanted.
        order: of the spline, 0 to 7.
        background: the value outside the field of view of ``source``.

    Returns:
        ``(N, C, *target.shape)``.

    Raises:
        ValueError: the image does not have the shape of ``source``, or the grids differ in dimension.
    """
    return warp_image(image, _no_flow(image, target), source, target, order, background)


def resample_labels(labels: Tensor, source: Grid, target: Grid, mode: str = "nearest", background: int = 0) -> Tensor:
    """Sample a label map on another grid.

    Args:
        labels: ``(N, 1, *source.shape)``, an integer type.
        source, target: where the labels lie, and where they are wanted.
        mode: ``"nearest"``, or ``"linear"``: the label that weighs most among the neighbours.
        background: the label outside the field of view of ``source``.

    Returns:
        ``(N, 1, *target.shape)``, type of ``labels``.
    """
    return warp_labels(labels, _no_flow(labels, target), source, target, mode, background)


def in_view(source: Grid, target: Grid, device: torch.device | str | None = None) -> Tensor:
    """Which voxels of ``target`` have their centre inside the field of view of ``source``.

    Returns:
        ``(1, 1, *target.shape)``, float32, 1 inside and 0 outside. The edge is that of the operators'
        ``extrapolate="edge"``: half a voxel and a twentieth beyond the outer centres.
    """
    rows = matrix(source=target, target=source)[0]
    inside = torch.ones(target.shape, dtype=torch.bool)
    for row, size in zip(rows, source.shape, strict=True):
        at = row[-1].reshape((1,) * target.ndim)
        for axis, step in enumerate(row[:-1]):
            along = [1] * target.ndim
            along[axis] = -1
            at = at + step * torch.arange(target.shape[axis], dtype=torch.float64).reshape(along)
        inside &= (at >= -0.55) & (at <= size - 0.45)
    return inside[None, None].to(device=device, dtype=torch.float32)


def warp_image(
    image: Tensor,
    flow: Tensor,
    source: Grid,
    target: Grid,
    order: int,
    background: float,
    prefilter: bool = True,
) -> Tensor:
    """``image`` (on ``source``) at ``p + flow(p)`` for the voxels ``p`` of ``target``; ``background`` out of view.

    Args:
        image: ``(N, C, *source.shape)``.
        flow: ``(N or 1, D, *target.shape)``, voxels of ``target``.
        prefilter: whether ``image`` holds samples (True) or what :func:`coefficients_` made of them.
    """
    _check(image, source)
    if not image.is_floating_point():
        image = image.float()
    to_source = matrix(target, source).to(flow)
    moved = ops.warp(image, flow, order, _bound(order), "edge", to_source, prefilter)
    if background == 0:
        return moved
    # Not by taking the background off and adding it again: that would cost the image its digits, or be NaN.
    ones = image.new_ones(()).expand(1, 1, *source.shape)
    seen = ops.warp(ones, flow.detach(), 0, _bound(order), "edge", to_source)
    return moved.masked_fill(seen == 0, background)


def coefficients_(image: Tensor, order: int) -> Tensor:
    """Turn an image into its spline coefficients in place: a large one needs no second of its size.

    Args:
        image: ``(N, C, *spatial)``, a floating type, contiguous; overwritten.
        order: of the spline, 0 to 7.

    Returns:
        ``image``, for :func:`warp_image` with ``prefilter=False``.
    """
    ndim = image.ndim - 2
    for axis in range(ndim) if order > 1 else ():
        orders = [order if a == axis else 1 for a in range(ndim)]
        across = 2 if axis else 3
        planes = max(1, image.shape[across] * _BLOCK // image.numel())
        for part in image.split(planes, dim=across):
            part.copy_(ops.prefilter(part, orders, _bound(order)))
    return image


def _bound(order: int) -> str:
    return "replicate" if order <= 1 else "dct1"


def warp_labels(labels: Tensor, flow: Tensor, source: Grid, target: Grid, mode: str, background: int) -> Tensor:
    """As :func:`warp_image`, for a label map ``(N, 1, *source.shape)``."""
    _check(labels, source)
    to_source = matrix(target, source).to(flow)
    return ops.warp_labels(labels, flow, mode=mode, matrix=to_source, background=background)


def _no_flow(image: Tensor, target: Grid) -> Tensor:
    check_tensor(image)
    dtype = image.dtype if image.is_floating_point() else torch.float32
    return torch.zeros((1, target.ndim, *target.shape), dtype=dtype, device=image.device)


def check_tensor(image: Any) -> None:
    """Refuse what is no tensor.

    Raises:
        ValueError: it is none; the message says how to make one.
    """
    if not isinstance(image, Tensor):
        raise ValueError(
            f"an image is a tensor (N, C, *spatial), got {type(image).__name__}; of an array of one image: "
            "torch.from_numpy(array)[None, None]"
        )


def _check(image: Tensor, grid: Grid) -> None:
    if image.ndim != grid.ndim + 2 or tuple(image.shape[2:]) != grid.shape:
        raise ValueError(
            f"an image on this grid has the shape (N, C, {', '.join(map(str, grid.shape))}), got {tuple(image.shape)}"
        )
