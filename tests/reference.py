"""The truth the operators are held to: dense, float64, slow and obvious.

Nothing here shares code or a formula with the compiled core: B-splines come from truncated powers in extended
precision, bounds from their definitions, every axis is a dense ``(points, n)`` matrix, and prefilters are dense solves.
Shapes, units and names are those of ``regnet.ops``; everything takes tensors or arrays and returns float64 arrays.
``tests/test_reference.py`` checks this file against scipy, closed forms and published numbers.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

Array = np.ndarray[Any, np.dtype[Any]]
BOUNDS = ("zero", "replicate", "dct1", "dct2", "dst1", "dst2", "dft")
ORDERS = tuple(range(8))
TOLERANCE = 0.05
HUGE = 2.0**30


def array(x: Any) -> Array:
    """Any tensor, array or nested list as a float64 array."""
    if isinstance(x, torch.Tensor):
        x = x.detach().double().numpy()
    return np.asarray(x, dtype=np.float64)


def per_axis(value: Any, ndim: int) -> list[Any]:
    """One value, or one per axis, as a list of one per axis."""
    return list(value) if isinstance(value, (list, tuple)) else [value] * ndim


def bspline(order: int, x: Any, degree: int = 0) -> Array:
    """The ``degree``-th derivative of the centred B-spline, taken from the right at the knots.

    It is the sum over the ``order + 2`` knots of (-1)^k binomial(order + 1, k) (x - knot_k)_+^order / order!, and each
    derivative lowers the power by one. The right half mirrors the left one, whose tail has a single term and so keeps
    its digits.
    """
    x = np.asarray(x, dtype=np.longdouble)
    power = order - degree
    total = np.zeros_like(x)
    if power < 0:  # almost everywhere
        return total.astype(np.float64)
    for k in range(order + 2):
        distance = np.longdouble(order + 1) / 2 - k - np.abs(x)
        reached = (distance > 0) | ((distance == 0) & (x <= 0))
        total += (-1) ** k * math.comb(order + 1, k) * np.where(reached, distance, 0) ** power * reached
    return (np.where(x > 0, (-1) ** degree, 1) * total / math.factorial(power)).astype(np.float64)


@functools.cache
def fold(bound: str, i: int, n: int) -> tuple[int, int]:
    """Where sample ``i`` of a signal of ``n`` samples lies inside it, and its sign: the definition of each bound."""
    if bound == "zero":
        return min(max(i, 0), n - 1), int(0 <= i < n)
    if bound == "replicate":
        return min(max(i, 0), n - 1), 1
    if bound == "dft":
        return i % n, 1
    if bound == "dct1":
        period = max(2 * (n - 1), 1)
        r = i % period
        return (r if r < n else period - r), 1
    if bound in ("dct2", "dst2"):
        r = i % (2 * n)
        return (r if r < n else 2 * n - 1 - r), (1 if r < n or bound == "dct2" else -1)
    if bound == "dst1":
        period = 2 * (n + 1)
        r = (i + 1) % period
        if r in (0, n + 1):
            return 0, 0
        return (r - 1, 1) if r <= n else (period - r - 1, -1)
    raise AssertionError(bound)


@functools.lru_cache(maxsize=64)
def _taps(x: bytes, n: int, order: int, bound: str, degree: int) -> tuple[Array, Array, Array]:
    """``(points, order + 1)`` each: which coefficients a coordinate sees, with which sign, and the spline there."""
    at = np.frombuffer(x)
    first = np.floor(at.astype(np.longdouble) - np.longdouble(order - 1) / 2)
    nodes = first[:, None] + np.arange(order + 1)
    folded = [fold(bound, int(node), n) for node in nodes.flat]
    index, sign = np.array(folded, dtype=np.int64).reshape(-1, 2).T
    return index.reshape(nodes.shape), sign.reshape(nodes.shape), bspline(order, at[:, None] - nodes, degree)


def axis_matrix(x: Any, n: int, order: int, bound: str, degree: int = 0, absolute: bool = False) -> Array:
    """``(points, n)``: row p holds the weights of the n coefficients in the spline's derivative at coordinate ``x[p]``.

    ``absolute`` sums the absolute weights instead, for the error measure. A derived weight crosses zero between the
    nodes, where rounding the coordinate changes all of it, so none counts less than a tenth of the largest.
    """
    index, sign, weight = _taps(array(x).tobytes(), n, order, bound, degree)
    if absolute:
        size = np.abs(weight)
        weight = np.maximum(size, size.max(1, keepdims=True) / 10) if degree else size
        sign = np.abs(sign)
    matrix = np.zeros((len(index), n))
    np.add.at(matrix, (np.arange(len(index))[:, None], index), sign * weight)
    return matrix


def inside(coords: Array, shape: Sequence[int], extrapolate: bool | str) -> Array:
    """``(points,)``: whether each column of ``coords`` (D, points) is in view. NaN compares false."""
    margin = {True: math.inf, False: 0.0, "center": 0.0, "edge": 0.5}[extrapolate] + TOLERANCE
    kept = np.ones(coords.shape[1], dtype=bool)
    for x, n in zip(coords, shape, strict=True):
        kept &= (x >= -margin) & (x <= n - 1 + margin)
    return kept


def _matrices(
    coords: Array, shape: Sequence[int], order: Any, bound: Any, extrapolate: bool | str, degree: int, absolute: bool
) -> list[list[Array]]:
    """``[d][k]``: axis d's matrix for the k-th derivative. Points that count for nothing have rows of zeros."""
    ndim = len(shape)
    kept = inside(coords, shape, extrapolate) & (np.abs(coords) < HUGE).all(axis=0)
    safe = np.where(kept, coords, 0.0)
    orders, bounds = per_axis(order, ndim), per_axis(bound, ndim)
    return [
        [axis_matrix(safe[d], shape[d], orders[d], bounds[d], k, absolute) * kept[:, None] for k in range(degree + 1)]
        for d in range(ndim)
    ]


def _degrees(ndim: int, degree: int) -> list[tuple[int, ...]]:
    """For each entry of a derivative tensor, in row-major order: how often each axis is differentiated."""
    return [tuple(axes.count(d) for d in range(ndim)) for axes in itertools.product(range(ndim), repeat=degree)]


_AXES = "ijk"


def sample(
    coeff: Any,
    coords: Any,
    order: Any = 1,
    bound: Any = "dct2",
    extrapolate: bool | str = True,
    degree: int = 0,
    absolute: bool = False,
) -> Array:
    """``(N, C, D^degree, *out)``: all derivatives of this degree. A batch of one is broadcast."""
    coeff, coords = array(coeff), array(coords)
    batch, channels, shape = max(len(coeff), len(coords)), coeff.shape[1], coeff.shape[2:]
    ndim, out = len(shape), coords.shape[2:]
    axes = _AXES[:ndim]
    result = np.zeros((batch, channels, ndim**degree, math.prod(out)))
    for n in range(batch):
        v, x = coeff[n % len(coeff)], coords[n % len(coords)].reshape(ndim, -1)
        matrices = _matrices(x, shape, order, bound, extrapolate, degree, absolute)
        for k, degrees in enumerate(_degrees(ndim, degree)):
            w = [matrices[d][degrees[d]] for d in range(ndim)]
            equation = ",".join("p" + a for a in axes) + f",c{axes}->cp"
            result[n, :, k] = np.einsum(equation, *w, np.abs(v) if absolute else v)
        result[n, :, :, np.isnan(x).any(axis=0)] = np.nan
    return result.reshape(batch, channels, *[ndim] * degree, *out)


def scatter(
    value: Any,
    coords: Any,
    shape: Sequence[int],
    order: Any = 1,
    bound: Any = "dct2",
    extrapolate: bool | str = True,
    degree: int = 0,
    absolute: bool = False,
) -> Array:
    """``(N, C, *shape)``: the adjoint of :func:`sample`; ``value`` is ``(N, C, D^degree, *out)``."""
    value, coords = array(value), array(coords)
    ndim = len(shape)
    batch, channels = max(len(value), len(coords)), value.shape[1]
    value = value.reshape(len(value), channels, ndim**degree, -1)
    axes = _AXES[:ndim]
    result = np.zeros((batch, channels, *shape))
    for n in range(batch):
        y, x = value[n % len(value)], coords[n % len(coords)].reshape(ndim, -1)
        y = np.where((np.abs(x) < HUGE).all(axis=0), y, 0.0)  # so that a NaN value at an invalid point goes nowhere
        matrices = _matrices(x, shape, order, bound, extrapolate, degree, absolute)
        for k, degrees in enumerate(_degrees(ndim, degree)):
            w = [matrices[d][degrees[d]] for d in range(ndim)]
            equation = ",".join("p" + a for a in axes) + f",cp->c{axes}"
            result[n] += np.einsum(equation, *w, np.abs(y[:, k]) if absolute else y[:, k])
    return result


def pull(coeff: Any, coords: Any, order: Any = 1, bound: Any = "dct2", extrapolate: bool | str = True) -> Array:
    return sample(coeff, coords, order, bound, extrapolate)


def grad(coeff: Any, coords: Any, order: Any = 1, bound: Any = "dct2", extrapolate: bool | str = True) -> Array:
    return sample(coeff, coords, order, bound, extrapolate, degree=1)


def hess(coeff: Any, coords: Any, order: Any = 1, bound: Any = "dct2", extrapolate: bool | str = True) -> Array:
    return sample(coeff, coords, order, bound, extrapolate, degree=2)


def push(
    value: Any, coords: Any, shape: Sequence[int], order: Any = 1, bound: Any = "dct2", extrapolate: bool | str = True
) -> Array:
    return scatter(value, coords, shape, order, bound, extrapolate)


def count(
    coords: Any, shape: Sequence[int], order: Any = 1, bound: Any = "dct2", extrapolate: bool | str = True
) -> Array:
    ones = np.ones((len(coords), 1, *coords.shape[2:]))
    return scatter(ones, coords, shape, order, bound, extrapolate)


def along(matrix: Array, x: Array, axis: int) -> Array:
    """``matrix @ x`` along one axis."""
    return np.moveaxis(np.tensordot(matrix, x, axes=(1, axis)), 0, axis)


@functools.cache
def interpolation_matrix(n: int, order: int, bound: str) -> Array:
    """``(n, n)``: from coefficients to the values at the n samples. Its inverse is the prefilter."""
    return axis_matrix(np.arange(n), n, order, bound)


@functools.cache
def filter_matrix(n: int, order: int, bound: str) -> Array:
    """``(n, n)``: from samples to coefficients; the identity below order 2."""
    return np.linalg.inv(interpolation_matrix(n, order, bound)) if order > 1 and n > 0 else np.eye(n)


def prefilter(image: Any, order: Any = 3, bound: Any = "dct2") -> Array:
    result = array(image)
    ndim = result.ndim - 2
    for d, (o, b) in enumerate(zip(per_axis(order, ndim), per_axis(bound, ndim), strict=True)):
        result = along(filter_matrix(result.shape[2 + d], o, b), result, 2 + d)
    return result


def prefilter_adjoint(coeff: Any, order: Any = 3, bound: Any = "dct2") -> Array:
    result = array(coeff)
    ndim = result.ndim - 2
    for d, (o, b) in enumerate(zip(per_axis(order, ndim), per_axis(bound, ndim), strict=True)):
        result = along(filter_matrix(result.shape[2 + d], o, b).T, result, 2 + d)
    return result


def identity(shape: Sequence[int]) -> Array:
    """``(1, D, *shape)``: every voxel's own coordinates."""
    return np.stack(np.meshgrid(*[np.arange(n, dtype=np.float64) for n in shape], indexing="ij"))[None]


def positions(flow: Any, matrix: Any = None) -> Array:
    """``(N, D, *spatial)``: where ``warp`` samples: ``matrix @ (p + flow(p))``."""
    flow = array(flow)
    where = identity(flow.shape[2:]) + flow
    if matrix is None:
        return where
    matrix = array(matrix)
    batch = max(len(where), len(matrix))
    rows = [
        np.tensordot(matrix[n % len(matrix), :, :-1], where[n % len(where)], axes=1)
        + matrix[n % len(matrix), :, -1].reshape(-1, *[1] * (flow.ndim - 2))
        for n in range(batch)
    ]
    return np.stack(rows)


def warp(
    image: Any, flow: Any, order: Any = 1, bound: Any = "dct2", extrapolate: bool | str = True, matrix: Any = None
) -> Array:
    return pull(prefilter(image, order, bound), positions(flow, matrix), order, bound, extrapolate)


def warp_labels(labels: Any, flow: Any, mode: str = "linear", matrix: Any = None, background: int = 0) -> Array:
    """The label of the largest linearly warped one-hot (ties: the smallest label), or the nearest voxel's label."""
    labels, where = array(labels), positions(flow, matrix)
    if mode == "nearest":
        result = pull(labels, where, 0, "replicate")
    else:
        names = np.unique(labels)
        scores = np.stack([pull(labels == name, where, 1, "replicate") for name in names])
        result = names[np.argmax(scores, axis=0)]
    seen = np.stack([inside(x.reshape(len(x), -1), labels.shape[2:], "edge").reshape(x.shape[1:]) for x in where])
    return np.where(seen[:, None], result, background)


def compose(outer: Any, inner: Any, order: Any = 1, bound: Any = "dct2") -> Array:
    return array(inner) + warp(outer, inner, order, bound)


def integrate(velocity: Any, steps: int = 7, order: Any = 1, bound: Any = "dct2") -> Array:
    flow = array(velocity) / 2**steps
    for _ in range(steps):
        flow = compose(flow, flow, order, bound)
    return flow


def difference_matrix(n: int) -> Array:
    """``(n, n)``: central differences, one-sided at both ends, nothing on an axis of one sample."""
    matrix = np.zeros((n, n))
    for i in range(n if n > 1 else 0):
        low, high = max(i - 1, 0), min(i + 1, n - 1)
        matrix[i, high] += 1 / (high - low)
        matrix[i, low] -= 1 / (high - low)
    return matrix


def jacobian(flow: Any) -> Array:
    """``(N, D, D, *spatial)``: ``[i, j]`` is d(p + flow)_i / dp_j."""
    flow = array(flow)
    ndim = flow.ndim - 2
    columns = [along(difference_matrix(flow.shape[2 + j]), flow, 2 + j) for j in range(ndim)]
    return np.stack(columns, axis=2) + np.eye(ndim).reshape(1, ndim, ndim, *[1] * ndim)


def jacobian_determinant(flow: Any) -> Array:
    """``(N, 1, *spatial)``."""
    return np.linalg.det(np.moveaxis(jacobian(flow), (1, 2), (-2, -1)))[:, None]


def resize_positions(n: int, size: int, anchor: str) -> Array:
    """``(size,)``: where on an axis of n samples each of ``size`` new samples lies."""
    i = np.arange(size)
    return (i + 0.5) * n / size - 0.5 if anchor == "edges" else i * (n - 1) / max(size - 1, 1)


def resize_matrices(
    shape: Sequence[int], sizes: Sequence[int], anchor: str, order: Any, bound: Any, prefilter: bool
) -> list[Array]:
    """``(size, n)`` an axis: from the samples (or, without ``prefilter``, the coefficients) to the new samples."""
    matrices = []
    orders, bounds = per_axis(order, len(shape)), per_axis(bound, len(shape))
    for n, size, o, b in zip(shape, sizes, orders, bounds, strict=True):
        matrix = axis_matrix(resize_positions(n, size, anchor), n, o, b)
        matrices.append(matrix @ filter_matrix(n, o, b) if prefilter else matrix)
    return matrices


def along_all(matrices: Sequence[Array], image: Array) -> Array:
    """One matrix along each spatial axis of ``(N, C, *spatial)``."""
    for d, matrix in enumerate(matrices):
        image = along(matrix, image, 2 + d)
    return image


def resize(
    image: Any, shape: Sequence[int], anchor: str = "edges", order: Any = 1, bound: Any = "dct2", prefilter: bool = True
) -> Array:
    image = array(image)
    return along_all(resize_matrices(image.shape[2:], shape, anchor, order, bound, prefilter), image)


def restrict(
    image: Any, shape: Sequence[int], anchor: str = "edges", order: Any = 1, bound: Any = "dct2", prefilter: bool = True
) -> Array:
    """The adjoint of :func:`resize` from ``shape`` to the shape of ``image``."""
    image = array(image)
    matrices = resize_matrices(shape, image.shape[2:], anchor, order, bound, prefilter)
    return along_all([matrix.T for matrix in matrices], image)


def ffd_matrices(grid: Sequence[int], shape: Sequence[int], spacing: Any) -> list[Array]:
    """``(voxels, control points)`` an axis."""
    steps = per_axis(spacing, len(grid))
    return [
        bspline(3, np.arange(n)[:, None] / step + 1 - np.arange(points))
        for points, n, step in zip(grid, shape, steps, strict=True)
    ]


def ffd(control: Any, shape: Sequence[int], spacing: Any) -> Array:
    control = array(control)
    return along_all(ffd_matrices(control.shape[2:], shape, spacing), control)


def box_sum(image: Any, window: Any) -> Array:
    """The sum over a centred odd window, zeros outside."""
    result = array(image)
    for d, width in enumerate(per_axis(window, result.ndim - 2)):
        i = np.arange(result.shape[2 + d])
        result = along((np.abs(i[:, None] - i) <= width // 2).astype(np.float64), result, 2 + d)
    return result


def error(got: Any, want: Any, scale: Any) -> float:
    """The largest ``|got - want| / scale``. NaN must meet NaN, and where the scale is 0 both must agree exactly.

    ``scale``: Σ|w||v| of each sample (``absolute=True`` above), or the largest reference coefficient of a prefilter.
    """
    got, want = array(got), array(want)
    assert got.shape == want.shape, f"shape {got.shape}, expected {want.shape}"
    scale = np.broadcast_to(array(scale), want.shape)
    assert np.array_equal(np.isnan(got), np.isnan(want)), "NaN where none is due, or none where one is"
    valid = ~np.isnan(want)
    difference = np.abs(got - want)[valid]
    scale = scale[valid]
    assert (difference[scale == 0] == 0).all(), "something where nothing contributes"
    return float((difference[scale > 0] / scale[scale > 0]).max(initial=0.0))
