"""The two families in plain torch, for the devices that no compiled module serves; and their second oracle.

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

from regnet.ops.options import BOUNDS

_MARGINS = (0.05, math.inf, 0.55)  # how far from the outer voxels a sample is in view, by the code of extrapolate
Tap = tuple[Tensor, Tensor, list[Tensor]]


def _weights(order: int, k: int, t: Tensor) -> list[Tensor]:
    """The k-th derivatives of the B-splines that reach a sample ``t`` past its first node, by Cox-de Boor."""
    if k > order:
        return [torch.zeros_like(t)] * (order + 1)
    w: list[Any] = [torch.ones_like(t)]
    for d in range(1, order - k + 1):
        w = [((t + (d - j)) * a + ((1 + j) - t) * b) / d for j, (a, b) in enumerate(itertools.pairwise([0, *w, 0]))]
    for _ in range(k):
        w = [a - b for a, b in itertools.pairwise([0, *w, 0])]
    return w


def _fold(bound: str, i: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Where node ``i`` lies within ``n`` voxels, and its sign: 0 where it contributes nothing."""
    if bound in ("zero", "replicate"):
        j = i.clamp(0, n - 1)
        return j, j == i if bound == "zero" else torch.ones_like(j)
    if bound == "dft":
        return i % n, torch.ones_like(i)
    shift, period = {"dct1": (0, max(2 * n - 2, 1)), "dst1": (1, 2 * n + 2)}.get(bound, (0, 2 * n))
    r = (i + shift) % period
    if bound == "dst1":
        return (torch.minimum(r, period - r) - 1).clamp(0, n - 1), torch.sign(r * (n + 1 - r))
    if bound == "dct1":
        return torch.minimum(r, period - r), torch.ones_like(r)
    return torch.minimum(r, period - 1 - r), torch.where(r < n, 1, 1 if bound == "dct2" else -1)


def taps(x: Tensor, n: int, order: int, bound: int, k: int) -> list[Tap]:
    """Along one axis: each tap's index, whether it counts, and its signed weights, derived 0 to k times."""
    shifted = x - (order - 1) / 2
    first = shifted.floor()
    weights = [_weights(order, degree, shifted - first) for degree in range(k + 1)]
    nodes = [_fold(BOUNDS[bound], first.long() + i, n) for i in range(order + 1)]
    return [(j, sign != 0, [w[i] * sign for w in weights]) for i, (j, sign) in enumerate(nodes)]


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
        x = (matrix[:, :, :-1, None] * x[:, None]).sum(2) + matrix[:, :, -1:]
    margin, view = _MARGINS[extrapolate], (x.abs() < 2.0**30).all(1)
    for along, n in zip(x.unbind(1), shape, strict=True):
        view = view & (along >= -margin) & (along <= n - 1 + margin)
    return torch.where(view[:, None], x, 0), view[:, None], x.isnan().any(1, keepdim=True)


def sample(coeff: Tensor, coords: Tensor, matrix: Tensor | None, k: int, *how: Any) -> Tensor:
    """``regnet::sample``: (N, C, *in), (N, D, *out) -> (N, C, D^k, *out)."""
    relative, order, bound, extrapolate = how
    batch, channels, *shape = coeff.shape
    sums: dict[tuple[int, ...], Any] = {}
    x, view, nowhere = _points(shape, coords, matrix, relative, extrapolate)
    for index, counts, weights in _visit(x, shape, order, bound, k):
        values = torch.where(counts, coeff.flatten(2).gather(2, index.expand(-1, channels, -1)), 0)
        for degrees, weight in weights.items():
            sums[degrees] = values * weight + sums.get(degrees, 0)
    out = torch.stack([sums[degrees] for degrees in _entries(len(shape), k)], 2)
    out = torch.where(view[:, None], out, 0).masked_fill_(nowhere[:, None], math.nan)
    return out.reshape(batch, channels, *[len(shape)] * k, *coords.shape[2:])


def scatter(value: Tensor, coords: Tensor, matrix: Tensor | None, shape: list[int], k: int, *how: Any) -> Tensor:
    """``regnet::scatter``: (N, C, D^k, *out), (N, D, *out) -> (N, C, *shape)."""
    relative, order, bound, extrapolate = how
    x, view, _ = _points(shape, coords, matrix, relative, extrapolate)
    entries = value.reshape(*value.shape[:2], len(shape) ** k, x.shape[2]).unbind(2)
    sums: dict[tuple[int, ...], Any] = {}
    for degrees, entry in zip(_entries(len(shape), k), entries, strict=True):
        sums[degrees] = torch.where(view, entry, 0) + sums.get(degrees, 0)
    target = value.new_zeros(*value.shape[:2], math.prod(shape))
    for index, counts, weights in _visit(x, shape, order, bound, k):
        parts = [sums[degrees] * weight for degrees, weight in weights.items()]
        part = torch.where(counts, functools.reduce(operator.add, parts), 0)
        target.scatter_add_(2, index.expand(part.shape), part)
    return target.reshape(*value.shape[:2], *shape)


def contract(coeff: Tensor, coords: Tensor, matrix: Tensor | None, value: Tensor, k: int, *how: Any) -> Tensor:
    """``regnet::contract``: the gradient of <value, sample_k(coeff)> in the coordinates, (N, D, *out)."""
    _, view, _ = _points(coeff.shape[2:], coords, matrix, how[0], how[3])
    products = value.unsqueeze(2 + k) * sample(coeff, coords, matrix, k + 1, *how)
    summed = products.sum(list(range(1, 2 + k)))
    return torch.where(view.reshape(len(view), 1, *coords.shape[2:]), summed, 0)
