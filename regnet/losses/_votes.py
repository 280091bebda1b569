"""Linearly warped indicators of every label at once: a voxel's sample is a mixture of at most 2^D labels.

So no indicator is ever made, whatever the number of labels: each voxel has the labels of the 2^D nodes around its
sample, and their weights. Most voxels lie inside one label, and are done with that.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

_SLAB = 2**18
"""Voxels at a time."""

_MARGIN = 0.55
"""Voxels beyond the outer centres that are still in view: the operators' ``extrapolate="edge"``."""


@dataclass(frozen=True)
class Slab:
    """Voxels ``where`` of a flattened grid. Labels are indices; "pure" voxels have all their nodes in one label.

    ``fixed``, ``first`` (label of one node), ``weight`` (of the voxel), ``pure``: ``(V,)``; a voxel out of view has no
    node, but the label ``none``, and is pure. ``mixed``: indices of the others; for those, ``labels`` and ``shares``,
    ``(2^D, M)``, and ``slopes``, ``(D, 2^D, M)``: the derivative of each share in each component of the field.
    """

    where: slice
    fixed: Tensor
    first: Tensor
    weight: Tensor
    pure: Tensor
    mixed: Tensor
    labels: Tensor
    shares: Tensor
    slopes: Tensor

    def alike(self) -> Tensor:
        """Share of each node's label at its mixed voxel, ``(2^D, M)``."""
        total = self.shares.clone()
        for i, j in itertools.combinations(range(len(self.labels)), 2):
            same = self.labels[i] == self.labels[j]
            total[i].addcmul_(self.shares[j], same)
            total[j].addcmul_(self.shares[i], same)
        return total


def slabs(moving: Tensor, fixed: Tensor, flow: Tensor, weight: Tensor | None, none: int) -> Iterator[Slab]:
    """One sample's voxels, part by part.

    Args:
        moving, fixed: indices of labels, ``(*in)`` and ``(*spatial)``, integers.
        flow: ``(D, *spatial)``, voxels.
        weight: ``(*spatial)``.
        none: index for what is no label.
    """
    size, flat = fixed.numel(), flow.flatten(1)
    source, target = moving.flatten(), fixed.flatten()
    for start in range(0, size, _SLAB):
        where = slice(start, min(start + _SLAB, size))
        lows, fractions, slopes, in_view = _coordinates(flat[:, where], start, fixed.shape, moving.shape)
        nodes = list(itertools.product((0, 1), repeat=len(flow)))
        labels = torch.stack([source[_index(lows, node, moving.shape)] for node in nodes])
        pure = (labels == labels[0]).all(0) | ~in_view
        mixed = (~pure).nonzero()[:, 0]
        parts = [(1 - f[mixed], f[mixed]) for f in fractions]
        steps = [slope[mixed] for slope in slopes]
        yield Slab(
            where,
            target[where],
            torch.where(in_view, labels[0], none),
            torch.ones_like(flat[0, where]) if weight is None else weight.flatten()[where],
            pure,
            mixed,
            labels[:, mixed],
            torch.stack([_product([part[bit] for part, bit in zip(parts, node, strict=True)]) for node in nodes]),
            torch.stack(
                [torch.stack([_slope(parts, node, axis, steps[axis]) for node in nodes]) for axis in range(len(flow))]
            ),
        )


def _coordinates(
    flow: Tensor, start: int, shape: Sequence[int], source: Sequence[int]
) -> tuple[list[Tensor], list[Tensor], list[Tensor], Tensor]:
    """Lower node, distance from it, its slope, and whether the sample is in view; ``(V,)`` per axis."""
    lows, fractions, slopes = [], [], []
    in_view = torch.ones(flow.shape[1], dtype=torch.bool, device=flow.device)
    rest = torch.arange(start, start + flow.shape[1], device=flow.device)
    own = []
    for size in reversed(shape):
        own.append(rest % size)
        rest = rest // size
    for axis, size in enumerate(source):
        x = flow[axis] + own[-1 - axis]
        in_view &= (x >= -_MARGIN) & (x <= size - 1 + _MARGIN)
        kept = torch.where(in_view, x, 0).clamp(0, size - 1)
        low = kept.floor().clamp(max=max(size - 2, 0))
        lows.append(low.long())
        fractions.append(kept - low)
        slopes.append((kept == x).to(flow.dtype))
    return lows, fractions, slopes, in_view


def _index(lows: Sequence[Tensor], node: Sequence[int], shape: Sequence[int]) -> Tensor:
    index = torch.zeros_like(lows[0])
    for low, bit, size in zip(lows, node, shape, strict=True):
        index = index * size + (low + bit).clamp(max=size - 1)
    return index


def _slope(parts: Sequence[tuple[Tensor, Tensor]], node: Sequence[int], axis: int, step: Tensor) -> Tensor:
    """Derivative of the share of ``node`` along ``axis``."""
    others = [part[bit] for d, (part, bit) in enumerate(zip(parts, node, strict=True)) if d != axis]
    return _product([step if node[axis] else -step, *others])


def _product(factors: Sequence[Tensor]) -> Tensor:
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor
    return product
