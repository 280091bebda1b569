"""Resample images and fields onto a grid of another size over the same field of view."""

import math
import numbers
from collections.abc import Sequence

import torch
from torch import Tensor

from regnet.ops import _check
from regnet.ops._lattice import Ramps, lattice
from regnet.ops.options import Bound, Order, bound_codes, order_codes
from regnet.ops.prefilter import spline_filter

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

    No smoothing is done, so that shrinking takes samples; :func:`restrict` averages.

    Args:
        image: ``(N, C, *in)``.
        shape, factor: exactly one of them: the new sizes, or what the old ones are multiplied by (and rounded).
        anchor: what stays in place: the outer "edges" of the border voxels, or their "centers".
        order, bound, prefilter: as :func:`regnet.ops.warp`; the bound fills what lies outside.

    Returns:
        ``(N, C, *shape)``, of the type of ``image``; computed in float64 if it is, else in float32.

    Raises:
        ValueError: not an image, both or none of shape and factor, or unknown words.
    """
    ndim = _check.image("image", image)
    sizes = _sizes(image, shape, factor, ndim)
    _, dtype = _check.together(image=image)
    ramps = _ramps(image.shape[2:], sizes, anchor)
    orders, bounds = order_codes(order, ndim), bound_codes(bound, ndim)
    coeff = spline_filter(image.to(dtype), orders, bounds, False) if prefilter else image
    return lattice(coeff, sizes, orders, bounds, ramps, False, dtype).to(image.dtype)


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
    _, scale, _, divisor = _ramps(flow.shape[2:], sizes, anchor)
    gains = [c / a if a else 1.0 for a, c in zip(scale, divisor, strict=True)]
    _, dtype = _check.together(flow=flow)
    scaled = torch.stack([channel * gain for channel, gain in zip(flow.to(dtype).unbind(1), gains, strict=True)], 1)
    return resize(scaled, sizes, None, anchor, order, bound, prefilter).to(flow.dtype)


def restrict(
    image: Tensor,
    shape: Sequence[int],
    anchor: str = "edges",
    order: Order = 1,
    bound: Bound = "dct2",
    prefilter: bool = True,
    normalize: bool = False,
) -> Tensor:
    """The adjoint of :func:`resize` from ``shape`` to the shape of ``image``: fine values summed into a coarse grid.

    Args:
        image: ``(N, C, *fine)``.
        shape: D sizes of the coarse grid.
        anchor, order, bound, prefilter: of the :func:`resize` whose adjoint this is; the prefilter's adjoint comes
            last.
        normalize: divide by ``restrict`` of ones, so that sums become weighted means and a constant stays what it is.
            Coarse voxels that no fine one sees are 0.

    Returns:
        ``(N, C, *shape)``, of the type of ``image``; computed in float64 if it is, else in float32. The same bits for
        any number of threads.

    Raises:
        ValueError: not an image, sizes that are not one positive number per axis, or unknown words.
    """
    ndim = _check.image("image", image)
    sizes = _sizes(image, shape, None, ndim)
    _, dtype = _check.together(image=image)
    ramps = _ramps(sizes, image.shape[2:], anchor)
    orders, bounds = order_codes(order, ndim), bound_codes(bound, ndim)

    def summed(fine: Tensor) -> Tensor:
        coarse = lattice(fine, sizes, orders, bounds, ramps, True, dtype)
        return spline_filter(coarse, orders, bounds, True) if prefilter else coarse

    out = summed(image)
    if normalize:
        weight = summed(image.new_ones(1, 1, *image.shape[2:]))
        out = out / weight.masked_fill(weight == 0, 1.0)
    return out.to(image.dtype)


def _sizes(image: Tensor, shape: Sequence[int] | None, factor: float | Sequence[float] | None, ndim: int) -> list[int]:
    if (shape is None) == (factor is None):
        raise ValueError(f"give exactly one of shape and factor, got shape={shape!r}, factor={factor!r}")
    if 0 in image.shape[2:]:
        raise ValueError(f"the image has no voxels, its shape is {tuple(image.shape)}")
    if shape is not None:
        sizes = _check.shape("shape", shape, ndim)
        if 0 in sizes:
            raise ValueError(f"shape must have at least one voxel an axis, got {tuple(sizes)}")
        return sizes
    factors = _check.per_axis(factor, ndim, numbers.Real)
    if not factors or not all(0 < f < math.inf for f in factors):
        raise ValueError(f"factor must be positive and finite, one or {ndim} (one per axis), got {factor!r}")
    return [max(1, round(n * f)) for n, f in zip(image.shape[2:], factors, strict=True)]


def _ramps(nodes: Sequence[int], samples: Sequence[int], anchor: str) -> Ramps:
    """Where the samples lie on the grid of the nodes."""
    if anchor not in _ANCHORS:
        raise ValueError(f'anchor must be "edges" or "centers", got {anchor!r}')
    spacing = [1.0] * len(nodes)
    if anchor == "edges":  # x = (p + 1/2) n / m - 1/2
        offset = [n - m for n, m in zip(nodes, samples, strict=True)]
        return Ramps(spacing, [2 * n for n in nodes], offset, [2 * m for m in samples])
    scale = [n - 1 if m > 1 else 0 for n, m in zip(nodes, samples, strict=True)]
    return Ramps(spacing, scale, [0] * len(scale), [m - 1 if m > 1 else 1 for m in samples])
