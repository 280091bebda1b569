"""The kernels in plain torch, for the devices that no compiled module serves; and the second oracle of the others.

They stand behind the same registered operators, so that every derivative comes from the same rules. A sample's taps
are visited one after the other, each for all samples at once; nothing waits for the device.
"""

import functools
import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from regnet.ops._torch_taps import taps
from regnet.ops.options import bound_codes, extrapolate_code

_SILENT = 4  # in the code of extrapolate: 0 where a coordinate is NaN, which a derivative wants
_MARGINS = (0.05, math.inf, 0.55)  # how far from the outer voxels a sample is in view, by the code of extrapolate


def _visit(
    x: Tensor, shape: Sequence[int], order: list[int], bound: list[int], k: int
) -> Iterator[tuple[Tensor, Tensor, dict[tuple[int, ...], Tensor]]]:
    """Tap by tap: flat index, whether it counts, and by degrees along the axes the weights of total degree k."""
    axes = [taps(*axis, k) for axis in zip(x.unbind(1), shape, order, bound, strict=True)]
    degrees = [d for d in itertools.product(range(k + 1), repeat=len(axes)) if sum(d) == k]
    for visited in itertools.product(*axes):
        index: Any = 0
        for (i, _, _), n in zip(visited, shape, strict=True):
            index = index * n + i
        counts = functools.reduce(operator.and_, [tap[1] for tap in visited])
        factors = [[tap[2][e] for tap, e in zip(visited, d, strict=True)] for d in degrees]
        products = [functools.reduce(operator.mul, f)[:, None] for f in factors]
        yield index[:, None], counts[:, None], dict(zip(degrees, products, strict=True))


def _entries(ndim: int, k: int) -> list[tuple[int, ...]]:
    """For each entry of the tensor of k-th derivatives, in row-major order, its degrees along the axes."""
    return [tuple(axes.count(d) for d in range(ndim)) for axes in itertools.product(range(ndim), repeat=k)]


def _points(
    shape: Sequence[int], coords: Tensor, matrix: Tensor | None, relative: bool, extrapolate: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Coordinates ``(N, D, P)``, 0 where a sample counts for nothing; and ``(N, 1, P)``: is it in view, is it NaN."""
    if relative:
        axes = [torch.arange(n, dtype=coords.dtype, device=coords.device) for n in coords.shape[2:]]
        coords = coords + torch.stack(torch.meshgrid(*axes, indexing="ij"))
    x = coords.flatten(2)
    if matrix is not None:
        x = x.clamp(-1e18, 1e18)  # as good as infinite, but times 0 it is 0
        x = (matrix[:, :, :-1, None] * x[:, None]).sum(2) + matrix[:, :, -1:]
    margin, view = _MARGINS[extrapolate % _SILENT], (x.abs() < 2.0**30).all(1)
    for along, n in zip(x.unbind(1), shape, strict=True):
        view = view & (along >= -margin) & (along <= n - 1 + margin)
    return torch.where(view[:, None], x, 0), view[:, None], x.isnan().any(1, keepdim=True)


def sample(coeff: Tensor, coords: Tensor, matrix: Tensor | None, k: int, *how: Any) -> Tensor:
    """``regnet::sample``: (N, C, *in), (N, D, *out) -> (N, C, D^k, *out)."""
    return sampled(coeff, coords, matrix, k, *how).clone()  # autograd forbids that an operator returns a view


def sampled(coeff: Tensor, coords: Tensor, matrix: Tensor | None, k: int, *how: Any) -> Tensor:
    """``sample`` without a change to any tensor, as tracers want it."""
    relative, order, bound, extrapolate = how
    batch, channels, *shape = coeff.shape
    sums: dict[tuple[int, ...], Any] = {}
    x, view, nowhere = _points(shape, coords, matrix, relative, extrapolate)
    grid = coeff.flatten(2)
    for index, counts, weights in _visit(x, shape, order, bound, k):
        values = torch.where(counts, grid.gather(2, index.expand(-1, channels, -1)), 0)
        for degrees, weight in weights.items():
            sums[degrees] = values * weight + sums.get(degrees, 0)
    flat = torch.stack([sums[degrees] for degrees in _entries(len(shape), k)], 2)
    flat = torch.where(view[:, None], flat, 0)
    flat = torch.where(nowhere[:, None], 0 if extrapolate & _SILENT else math.nan, flat)
    return flat.reshape([batch, channels, *[len(shape)] * k, *coords.shape[2:]])


def scatter(value: Tensor, coords: Tensor, matrix: Tensor | None, shape: list[int], k: int, *how: Any) -> Tensor:
    """``regnet::scatter``: (N, C, D^k, *out), (N, D, *out) -> (N, C, *shape)."""
    relative, order, bound, extrapolate = how
    x, view, _ = _points(shape, coords, matrix, relative, extrapolate)
    entries = value.reshape(*value.shape[:2], len(shape) ** k, x.shape[2]).unbind(2)
    sums: dict[tuple[int, ...], Any] = {}
    for degrees, entry in zip(_entries(len(shape), k), entries, strict=True):
        sums[degrees] = torch.where(view, entry, 0) + sums.get(degrees, 0)
    target = value.new_zeros([*value.shape[:2], *shape])
    for index, counts, weights in _visit(x, shape, order, bound, k):
        parts = [sums[degrees] * weight for degrees, weight in weights.items()]
        part = torch.where(counts, functools.reduce(operator.add, parts), 0)
        target.flatten(2).scatter_add_(2, index.expand(part.shape), part)
    return target


def contract(coeff: Tensor, coords: Tensor, matrix: Tensor | None, value: Tensor, k: int, *how: Any) -> Tensor:
    """``regnet::contract``: the gradient of <value, sample_k(coeff)> in the coordinates, (N, D, *out)."""
    _, view, _ = _points(coeff.shape[2:], coords, matrix, how[0], how[3])
    products = value.unsqueeze(2 + k) * sample(coeff, coords, matrix, k + 1, *how)
    summed = products.sum(list(range(1, 2 + k)))
    return torch.where(view.reshape(len(view), 1, *coords.shape[2:]), summed, 0)


def vote(labels: Tensor, flow: Tensor, matrix: Tensor | None, order: int, background: int) -> Tensor:
    """``regnet::vote``: (N, 1, *in), (N, D, *out) -> (N, 1, *out)."""
    ndim, shape = flow.shape[1], labels.shape[2:]
    high = -(2**63) if labels.dtype == torch.uint64 else 0  # turned over, its values are in the order of int64
    x, view, _ = _points(shape, flow, matrix, True, extrapolate_code("edge"))
    visits = _visit(x, shape, [order] * ndim, bound_codes("replicate", ndim), 0)
    names = labels.long().flatten(2).bitwise_xor(high)
    votes = [(names.gather(2, index), *weights.values()) for index, _, weights in visits]
    best, most = votes[0][0], torch.zeros_like(votes[0][1])
    for name, _ in votes:
        total = functools.reduce(operator.add, [torch.where(other == name, weight, 0) for other, weight in votes])
        wins = (total > most) | ((total == most) & (name < best))
        best, most = torch.where(wins, name, best), torch.maximum(total, most)
    out = torch.where(view, best.bitwise_xor(high), background)
    return out.reshape(len(labels), 1, *flow.shape[2:]).to(labels.dtype)
