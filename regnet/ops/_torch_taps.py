"""The taps of samples in plain torch: which nodes they see along an axis, and with what weights."""

import itertools
from typing import Any

import torch
from torch import Tensor

from regnet.ops.options import BOUNDS, KEYS

Tap = tuple[Tensor, Tensor, list[Tensor]]


def taps(x: Tensor, n: int, order: int, bound: int, k: int) -> list[Tap]:
    """Each tap's index among ``n`` nodes, whether it counts, and its signed weights, derived 0 to ``k`` times."""
    count = 4 if order == KEYS else order + 1
    shifted = x - (count - 2) / 2
    first = shifted.floor()
    weights = [_weights(order, degree, shifted - first) for degree in range(k + 1)]
    nodes = [_fold(BOUNDS[bound], first.long() + i, n) for i in range(count)]
    return [(j, sign != 0, [w[i] * sign for w in weights]) for i, (j, sign) in enumerate(nodes)]


def _weights(order: int, k: int, t: Tensor) -> list[Tensor]:
    """The k-th derivatives of the B-splines that reach a sample ``t`` past its first node, by Cox-de Boor."""
    if order == KEYS:
        return _keys(k, t)
    if k > order:
        return [torch.zeros_like(t)] * (order + 1)
    w: list[Any] = [torch.ones_like(t)]
    for d in range(1, order - k + 1):
        w = [((t + (d - j)) * a + ((1 + j) - t) * b) / d for j, (a, b) in enumerate(itertools.pairwise([0, *w, 0]))]
    for _ in range(k):
        w = [a - b for a, b in itertools.pairwise([0, *w, 0])]
    return w


def _keys(k: int, t: Tensor) -> list[Tensor]:
    """The same for Keys' cubic convolution with a = -3/4, in Hermite's form."""
    step = _derived([0, 0, 3, -2], k, t)
    before, behind = -0.75 * _derived([0, 1, -2, 1], k, t), -0.75 * _derived([0, 0, -1, 1], k, t)
    return [before, int(k == 0) - step + behind, step - before, -behind]


def _derived(coefficients: list[int], k: int, t: Tensor) -> Tensor:
    """The k-th derivative of a polynomial, its coefficients given from the constant up."""
    for _ in range(k):
        coefficients = [i * c for i, c in enumerate(coefficients)][1:]
    total = torch.zeros_like(t)
    for c in reversed(coefficients):
        total = total * t + c
    return total


def _fold(bound: str, i: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Where node ``i`` lies within ``n`` voxels, and its sign: 0 where it contributes nothing."""
    if bound in ("zero", "replicate"):
        j = i.clamp(0, n - 1)
        return j, j == i if bound == "zero" else torch.ones_like(j)
    if bound == "dft":
        return i % n, torch.ones_like(i)
    if bound == "dct1":
        period = max(2 * n - 2, 1)
        r = i % period
        return torch.minimum(r, period - r), torch.ones_like(r)
    if bound == "dst1":
        period = 2 * n + 2
        r = (i + 1) % period
        return (torch.minimum(r, period - r) - 1).clamp(0, n - 1), torch.sign(r * (n + 1 - r))
    r = i % (2 * n)
    return torch.minimum(r, 2 * n - 1 - r), torch.where(r < n, 1, -1 if bound == "dst2" else 1)
