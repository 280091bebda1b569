"""The two families of operators, ``sample_k`` and its adjoint ``scatter_k``, and what differentiates both.

``sample(k)`` gives all k-th derivatives of the interpolant; ``scatter(k)`` is its adjoint in the coefficients;
``contract(k)`` is the gradient of both in the coordinates.  Every derivative of these three is again one of them, of
a degree higher, so the family is closed under differentiation, forward and backward, to any order that the core
holds (k = 3 for sample and scatter).
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from regnet.ops import _coordinates as coordinates
from regnet.ops import _core, _torch
from regnet.ops._how import SCHEMA, How
from regnet.ops._library import define, fold, save, unfold


def sample(coeff: Tensor, coords: Tensor, matrix: Tensor | None, k: int, how: How) -> Tensor:
    """All k-th derivatives of the interpolant of ``coeff``: (N, C, *in), (N, D, *out) -> (N, C, D^k, *out)."""
    return _sample(coeff, coords, matrix, k, *how)


def scatter(value: Tensor, coords: Tensor, matrix: Tensor | None, shape: Sequence[int], k: int, how: How) -> Tensor:
    """The adjoint of ``sample`` in the coefficients: (N, C, D^k, *out), (N, D, *out) -> (N, C, *shape)."""
    return _scatter(value, coords, matrix, list(shape), k, *how)


def contract(coeff: Tensor, coords: Tensor, matrix: Tensor | None, value: Tensor, k: int, how: How) -> Tensor:
    """The gradient of <value, sample_k(coeff)> in the coordinates x: (N, D, *out)."""
    return _contract(coeff, coords, matrix, value, k, *how)


# --- the kernels, and the shapes they give ---------------------------------------------------------------------------


def _sample_shape(coeff: Tensor, coords: Tensor, k: int) -> list[int]:
    return [*coeff.shape[:2], *[coords.shape[1]] * k, *coords.shape[2:]]


def _call(
    name: str, k: int, volume: Tensor, coords: Tensor, matrix: Tensor | None, rest: Sequence[Tensor], how: tuple
) -> None:
    relative, order, bound, extrapolate = how
    matrix = None if matrix is None else matrix.contiguous()
    _core.call(name, volume, k, volume, coords, relative, matrix, *rest, order, bound, extrapolate)


@_core.native_or(_torch.sample)
def sample_kernel(coeff, coords, matrix, k, *how):  # type: ignore[no-untyped-def]
    out = coeff.new_empty(_sample_shape(coeff, coords, k))
    if out.numel():
        _call("sample", k, coeff, coords, matrix, [_flat(out, k)], how)
    return out


def _sample_fake(coeff, coords, matrix, k, *how):  # type: ignore[no-untyped-def]
    return coeff.new_empty(_sample_shape(coeff, coords, k))


@_core.native_or(_torch.scatter)
def _scatter_kernel(value, coords, matrix, shape, k, *how):  # type: ignore[no-untyped-def]
    target = value.new_zeros([*value.shape[:2], *shape])
    if target.numel() and value.numel():
        if value.is_cuda and torch.are_deterministic_algorithms_enabled():
            return _scatter_whole(value, coords, matrix, shape, k, how)
        _call("scatter", k, _flat(value, k), coords, matrix, [target], how)
    return target


def _scatter_whole(
    value: Tensor, coords: Tensor, matrix: Tensor | None, shape: Sequence[int], k: int, how: tuple
) -> Tensor:
    """The same bits in every run: sums of whole numbers, as finely scaled as the largest value allows.

    A value is held to ``2**-(60 - 3 k)`` of the number of samples times the largest, which no sum can exceed. One that
    is not finite makes all of the result so. Nothing waits for the GPU.
    """
    largest = value.abs().amax()
    most = 127 if value.dtype == torch.float32 else 1023  # the largest power of two that the type holds
    unit = torch.frexp(largest).exponent.clamp(1 - most, most).to(value.dtype).exp2()
    scale = 2.0 ** (60 - 3 * k - coords[0, 0].numel().bit_length())
    target = value.new_zeros([*value.shape[:2], *shape], dtype=torch.int64)
    _call("scatter_whole", k, _flat(value / unit * scale, k), coords, matrix, [target], how)
    return target.to(value.dtype) / scale * torch.where(largest.isfinite(), unit, torch.nan)


def _scatter_fake(value, coords, matrix, shape, k, *how):  # type: ignore[no-untyped-def]
    return value.new_empty([*value.shape[:2], *shape])


@_core.native_or(_torch.contract)
def _contract_kernel(coeff, coords, matrix, value, k, *how):  # type: ignore[no-untyped-def]
    out = torch.empty(coords.shape, dtype=coords.dtype, device=coords.device)
    if out.numel():
        _call("contract", k, coeff, coords, matrix, [_flat(value, k), out], how)
    return out


def _contract_fake(coeff, coords, matrix, value, k, *how):  # type: ignore[no-untyped-def]
    return torch.empty(coords.shape, dtype=coords.dtype, device=coords.device)


def _flat(tensor: Tensor, k: int) -> Tensor:
    """(N, C, D, ..., D, *sp) with k tensor axes -> (N, C * D**k, *sp)."""
    return tensor.flatten(1, 1 + k) if k else tensor


# --- tensor axes -----------------------------------------------------------------------------------------------------


def _outer(tensor: Tensor, vector: Tensor, k: int) -> Tensor:
    """(N, C, D^k, *sp) x (N, D, *sp) -> (N, C, D^(k+1), *sp)."""
    return tensor.unsqueeze(2 + k) * _aligned(vector, k)


def inner(tensor: Tensor, vector: Tensor, k: int) -> Tensor:
    """(N, C, D^(k+1), *sp) x (N, D, *sp) -> (N, C, D^k, *sp), summed over the last tensor axis."""
    return (tensor * _aligned(vector, k)).sum(2 + k)


def _aligned(vector: Tensor, k: int) -> Tensor:
    """(N, D, *sp) -> (N, 1, 1^k, D, *sp)."""
    return vector.reshape(vector.shape[0], *[1] * (1 + k), *vector.shape[1:])


# --- sample -------------------------------------------------------------------------------------------------------


def _sample_setup(ctx: Any, inputs: tuple, output: Tensor) -> None:
    coeff, coords, matrix, ctx.k, *how = inputs
    ctx.how, ctx.shape = How(*how), coeff.shape[2:]
    need_coeff, *need_x = ctx.needs_input_grad[:3]
    save(ctx, (coeff, coords, matrix), (any(need_x), need_coeff or any(need_x), True))


def _sample_backward(ctx: Any, grad: Tensor | None) -> tuple:
    if grad is None:
        return (None,) * 8
    coeff, coords, matrix = ctx.saved_tensors
    grad_coeff = scatter(grad, coords, matrix, ctx.shape, ctx.k, ctx.how) if ctx.needs_input_grad[0] else None
    grads = coordinates.gradients(
        ctx, lambda: contract(coeff, coords, matrix, grad, ctx.k, ctx.how), coords, matrix, ctx.how, 1
    )
    return grad_coeff, *grads, *[None] * 5


def _sample_jvp(ctx, dcoeff, dcoords, dmatrix, *_):  # type: ignore[no-untyped-def]
    coeff, coords, matrix = ctx.saved_tensors
    k, how = ctx.k, ctx.how.silent()
    dx = coordinates.tangent(coords, matrix, dcoords, dmatrix, how)
    out = sample(dcoeff, coords, matrix, k, how) if dcoeff is not None else 0
    if dx is not None:
        out = out + inner(sample(coeff, coords, matrix, k + 1, how), dx, k)
    return out


def _sample_vmap(info, in_dims, coeff, coords, matrix, k, *how):  # type: ignore[no-untyped-def]
    coeff, coords, matrix = fold(info.batch_size, in_dims, coeff, coords, matrix)
    return unfold(info.batch_size, sample(coeff, coords, matrix, k, How(*how))), 0


_sample = define(
    "sample",
    f"(Tensor coeff, Tensor coords, Tensor? matrix, int k, {SCHEMA}) -> Tensor",
    sample_kernel,
    _sample_fake,
    _sample_backward,
    _sample_setup,
    _sample_jvp,
    _sample_vmap,
)


# --- scatter ------------------------------------------------------------------------------------------------------


def _scatter_setup(ctx: Any, inputs: tuple, output: Tensor) -> None:
    value, coords, matrix, ctx.shape, ctx.k, *how = inputs
    ctx.how = How(*how)
    need_value, *need_x = ctx.needs_input_grad[:3]
    save(ctx, (value, coords, matrix), (any(need_x), need_value or any(need_x), True))


def _scatter_backward(ctx: Any, grad: Tensor | None) -> tuple:
    if grad is None:
        return (None,) * 9
    value, coords, matrix = ctx.saved_tensors
    grad_value = sample(grad, coords, matrix, ctx.k, ctx.how.silent()) if ctx.needs_input_grad[0] else None
    grads = coordinates.gradients(
        ctx, lambda: contract(grad, coords, matrix, value, ctx.k, ctx.how), coords, matrix, ctx.how, 1
    )
    return grad_value, *grads, *[None] * 6


def _scatter_jvp(ctx, dvalue, dcoords, dmatrix, *_):  # type: ignore[no-untyped-def]
    value, coords, matrix = ctx.saved_tensors
    k, how = ctx.k, ctx.how
    dx = coordinates.tangent(coords, matrix, dcoords, dmatrix, how)
    out = scatter(dvalue, coords, matrix, ctx.shape, k, how) if dvalue is not None else 0
    if dx is not None:
        out = out + scatter(_outer(value, dx, k), coords, matrix, ctx.shape, k + 1, how)
    return out


def _scatter_vmap(info, in_dims, value, coords, matrix, shape, k, *how):  # type: ignore[no-untyped-def]
    value, coords, matrix = fold(info.batch_size, in_dims, value, coords, matrix)
    return unfold(info.batch_size, scatter(value, coords, matrix, shape, k, How(*how))), 0


_scatter = define(
    "scatter",
    f"(Tensor value, Tensor coords, Tensor? matrix, SymInt[] shape, int k, {SCHEMA}) -> Tensor",
    _scatter_kernel,
    _scatter_fake,
    _scatter_backward,
    _scatter_setup,
    _scatter_jvp,
    _scatter_vmap,
)


# --- contract -----------------------------------------------------------------------------------------------------


def _contract_setup(ctx: Any, inputs: tuple, output: Tensor) -> None:
    coeff, coords, matrix, value, ctx.k, *how = inputs
    ctx.how, ctx.shape = How(*how), coeff.shape[2:]
    need_coeff, need_coords, need_matrix, need_value = ctx.needs_input_grad[:4]
    need_x = need_coords or need_matrix
    save(ctx, (coeff, coords, matrix, value), (need_value or need_x, True, True, need_coeff or need_x))


def _contract_backward(ctx: Any, grad: Tensor | None) -> tuple:
    if grad is None:
        return (None,) * 9
    coeff, coords, matrix, value = ctx.saved_tensors
    k, how = ctx.k, ctx.how
    grad_coeff = (
        scatter(_outer(value, grad, k), coords, matrix, ctx.shape, k + 1, how) if ctx.needs_input_grad[0] else None
    )
    grads = coordinates.gradients(
        ctx, lambda: contract(coeff, coords, matrix, _outer(value, grad, k), k + 1, how), coords, matrix, how, 1
    )
    grad_value = None
    if ctx.needs_input_grad[3]:
        grad_value = inner(sample(coeff, coords, matrix, k + 1, how.silent()), grad, k)
    return grad_coeff, *grads, grad_value, *[None] * 5


def _contract_jvp(ctx, dcoeff, dcoords, dmatrix, dvalue, *_):  # type: ignore[no-untyped-def]
    coeff, coords, matrix, value = ctx.saved_tensors
    k, how = ctx.k, ctx.how
    dx = coordinates.tangent(coords, matrix, dcoords, dmatrix, how)
    out = contract(dcoeff, coords, matrix, value, k, how) if dcoeff is not None else 0
    if dvalue is not None:
        out = out + contract(coeff, coords, matrix, dvalue, k, how)
    if dx is not None:
        out = out + contract(coeff, coords, matrix, _outer(value, dx, k), k + 1, how)
    return out


def _contract_vmap(info, in_dims, coeff, coords, matrix, value, k, *how):  # type: ignore[no-untyped-def]
    coeff, coords, matrix, value = fold(info.batch_size, in_dims, coeff, coords, matrix, value)
    return unfold(info.batch_size, contract(coeff, coords, matrix, value, k, How(*how))), 0


_contract = define(
    "contract",
    f"(Tensor coeff, Tensor coords, Tensor? matrix, Tensor value, int k, {SCHEMA}) -> Tensor",
    _contract_kernel,
    _contract_fake,
    _contract_backward,
    _contract_setup,
    _contract_jvp,
    _contract_vmap,
)
