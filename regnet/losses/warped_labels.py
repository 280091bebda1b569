"""How well the labels of the moving image, warped by the field, cover those of the fixed image: 0 is exactly."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from regnet.losses._analytic import attach, wants_gradient
from regnet.losses._dice import dice_of_sums
from regnet.losses._precision import full_precision
from regnet.losses._votes import Slab, slabs
from regnet.losses._weights import check_field
from regnet.losses.overlap import check_denominator, check_smooth


@full_precision
def warped_dice(
    moving: Tensor,
    fixed: Tensor,
    flow: Tensor,
    labels: Sequence[int] | None = None,
    mask: Tensor | None = None,
    denominator: str = "squares",
) -> Tensor:
    """:func:`regnet.losses.soft_dice` of linearly warped indicators and those of the fixed labels, making neither.

    The indicators are what ``ops.warp(indicator, flow, bound="replicate", extrapolate="edge")`` gives, so beyond the
    moving image there is no label, and a fixed label there is missed. Time and memory do not depend on the number of
    labels. The gradient in the field is exact.

    Args:
        moving: ``(N, 1, *in)``, integers.
        fixed: ``(N, 1, *spatial)``, integers.
        flow: ``(N, D, *spatial)``, voxels; a displacement from fixed to moving.
        labels: which to compare; None: those that ``fixed`` holds, without 0.
        mask: weight of each voxel, >= 0, ``(N or 1, 1, *spatial)``. It is not differentiated.
        denominator: "squares" or "sums", as in :func:`regnet.losses.soft_dice`.

    Returns:
        0-d in [0, 1]: the mean over the labels present of all samples; 0 where there is none. Differentiable once, in
        ``flow``.

    Raises:
        ValueError: the shapes do not fit, the labels are no integers, or an unknown denominator.
    """
    flow, mask, known = _check(moving, fixed, flow, labels, mask)
    check_denominator(denominator)
    squares, wanted = denominator == "squares", wants_gradient(flow)
    with torch.no_grad():
        both, either = flow.new_zeros((2, len(flow), len(known) + 1), dtype=torch.float64)
        for n, part in _parts(moving, fixed, flow, mask, known):
            _count(part, both[n], either[n], squares)
        value, of_both, of_either = dice_of_sums(2 * both[:, :-1], either[:, :-1])
        gradient = torch.zeros_like(flow, memory_format=torch.contiguous_format) if wanted else None
        if gradient is not None:
            # the last index, none of the labels, has no part in the mean
            hit, own = (torch.nn.functional.pad(c, (0, 1)).to(flow.dtype) for c in (2 * of_both, of_either))
            for n, part in _parts(moving, fixed, flow, mask, known):
                slope = own[n][part.labels] * (2 * part.alike() if squares else 1)
                slope += hit[n][part.labels] * (part.labels == part.fixed[part.mixed])
                _scatter(gradient[n], part, slope)
        value += 0 * flow.sum()  # NaN samples no label, and must reach the loss
    return attach(value.to(flow.dtype), (flow, gradient))


@full_precision
def warped_cross_entropy(
    moving: Tensor,
    fixed: Tensor,
    flow: Tensor,
    labels: Sequence[int] | None = None,
    mask: Tensor | None = None,
    smooth: float = 0.01,
) -> Tensor:
    """:func:`regnet.losses.cross_entropy` of linearly warped indicators and those of the fixed labels, making neither.

    Mean of -log(smooth + (1 - smooth) s), s the share of the fixed label in the warped moving labels; beyond the
    moving image that of none of the labels is 1. Arguments and errors as of :func:`warped_dice`; ``smooth`` in (0, 1).

    Returns:
        0-d in [0, -log(smooth)], in nats: the mean over samples. Differentiable once, in ``flow``.
    """
    flow, mask, known = _check(moving, fixed, flow, labels, mask)
    check_smooth(smooth)
    wanted = wants_gradient(flow)
    with torch.no_grad():
        total, weights = flow.new_zeros((2, len(flow)), dtype=torch.float64)
        gradient = torch.zeros_like(flow, memory_format=torch.contiguous_format) if wanted else None
        for n, part in _parts(moving, fixed, flow, mask, known):
            hits = part.labels == part.fixed[part.mixed]
            share = (part.pure & (part.first == part.fixed)).to(flow.dtype)
            share[part.mixed] = (part.shares * hits).sum(0)
            share = smooth + (1 - smooth) * share
            total[n] -= (part.weight * share.log()).sum()
            weights[n] += part.weight.sum()
            if gradient is not None:
                _scatter(gradient[n], part, (smooth - 1) / share[part.mixed] * hits)
        inverse = torch.where(weights > 0, 1 / weights, 0) / len(flow)
        if gradient is not None:
            gradient *= inverse.to(flow.dtype).view(-1, *[1] * (flow.dim() - 1))
        value = (total * inverse).sum() + 0 * flow.sum()  # NaN samples no label, and must reach the loss
    return attach(value.to(flow.dtype), (flow, gradient))


def _check(
    moving: Tensor, fixed: Tensor, flow: Tensor, labels: Sequence[int] | None, mask: Tensor | None
) -> tuple[Tensor, Tensor | None, Tensor]:
    """The field, the mask, and the labels to compare, sorted."""
    flow, mask = check_field(flow, mask)
    for name, image in (("moving", moving), ("fixed", fixed)):
        if image.is_floating_point() or image.shape[:2] != (len(flow), 1) or image.dim() != flow.dim():
            raise ValueError(
                f"{name} labels must be integers (N, 1, *spatial) for a flow {tuple(flow.shape)}: got "
                f"{tuple(image.shape)} {image.dtype}"
            )
    if fixed.shape[2:] != flow.shape[2:]:
        raise ValueError(f"fixed labels and flow must share a grid: got {tuple(fixed.shape)} and {tuple(flow.shape)}")
    chosen = fixed.long().unique() if labels is None else torch.tensor(sorted(set(labels)), device=fixed.device)
    return flow, mask, chosen[chosen != 0].long() if labels is None else chosen.long()


def _parts(
    moving: Tensor, fixed: Tensor, flow: Tensor, mask: Tensor | None, known: Tensor
) -> Iterator[tuple[int, Slab]]:
    """Sample by sample, slab by slab; labels as indices into ``known``, its length for all others."""
    for n in range(len(flow)):
        weight = None if mask is None else mask[n % len(mask), 0].to(flow.dtype)
        for part in slabs(_indices(moving[n, 0], known), _indices(fixed[n, 0], known), flow[n], weight, len(known)):
            yield n, part


def _indices(labels: Tensor, known: Tensor) -> Tensor:
    if len(known) == 0:
        return torch.zeros_like(labels, dtype=torch.int32)
    values = labels.long()
    index = torch.searchsorted(known, values).clamp_(max=len(known) - 1)
    return torch.where(known[index] == values, index, len(known)).int()


def _count(part: Slab, both: Tensor, either: Tensor, squares: bool) -> None:
    """Add a slab's Σ x y, and its Σ (x² + y²) or Σ (x + y), label by label."""
    weight = part.weight.double()
    hit = weight * (part.pure & (part.first == part.fixed))
    mixed = part.weight[part.mixed]
    share = part.shares * mixed
    hits = share * (part.labels == part.fixed[part.mixed])
    for total, labels, values in (
        (both, part.first, hit),
        (both, part.labels, hits),
        (either, part.first, weight * part.pure),
        (either, part.labels, share * part.alike() if squares else share),
        (either, part.fixed, weight),
    ):
        total += torch.bincount(labels.flatten(), values.flatten().double(), minlength=len(total))


def _scatter(gradient: Tensor, part: Slab, slope: Tensor) -> None:
    """Put the derivative in the field, from that in the shares, at the mixed voxels; the pure ones have none."""
    place = gradient.flatten(1)[:, part.where]
    place[:, part.mixed] = (part.slopes * (slope * part.weight[part.mixed])).sum(1)
