"""The two families of operators, ``sample_k`` and its adjoint ``scatter_k``, and what differentiates both.

``sample(k)`` gives all k-th derivatives of the interpolant; ``scatter(k)`` is its adjoint in the coefficients;
``contract(k)`` is the gradient of both in the coordinates.  Every derivative of these three is again one of them, of
a degree higher, so the family is closed under differentiation, forward and backward, to any order that the core
holds (k = 3 for sample and scatter).

Each operator has two faces that share one backward: a registered ``torch.library`` op, which ``torch.compile`` sees,
and an ``autograd.Function``, which also knows forward mode and ``vmap``.  A ``custom_op`` alone gives silent zeros in
forward mode.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad

from regnet.ops import _core, _torch
from regnet.ops._library import define, plain


class How(NamedTuple):
    """Everything about a call that is not a tensor."""

    relative: bool  # coordinates are displacements of the voxel they stand at
    order: list[int]
    bound: list[int]
    extrapolate: int


# --- the kernels, and the shapes they give ---------------------------------------------------------------------------

_HOW = "bool relative, int[] order, int[] bound, int extrapolate"


def _sample_shape(coeff: Tensor, coords: Tensor, k: int) -> list[int]:
    return [*coeff.shape[:2], *[coords.shape[1]] * k, *coords.shape[2:]]


def _call(
    name: str, k: int, volume: Tensor, coords: Tensor, matrix: Tensor | None, rest: Sequence[Tensor], how: tuple
) -> None:
    relative, order, bound, extrapolate = how
    matrix = None if matrix is None else matrix.contiguous()
    _core.call(name, volume, k, volume, coords, relative, matrix, *rest, order, bound, extrapolate)


@_core.native_or(_torch.sample)
def _sample_kernel(coeff, coords, matrix, k, *how):  # type: ignore[no-untyped-def]
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


# --- coordinates --------------------------------------------------------------------------------------------------
# A sample is taken at x = M (p + u) + t, or p + u, or u; the operators differentiate in x, these carry on to u and M.


def _homogeneous(coords: Tensor, relative: bool) -> Tensor:
    """(N, D + 1, *sp): the coordinates that the matrix acts on, and ones; 0 for those that have no gradient anyway."""
    coords = coords.nan_to_num(0.0, 0.0, 0.0)
    if relative:
        axes = [torch.arange(n, dtype=coords.dtype, device=coords.device) for n in coords.shape[2:]]
        coords = coords + torch.stack(torch.meshgrid(*axes, indexing="ij"))
    return torch.cat([coords, torch.ones_like(coords[:, :1])], 1)


_SUM_BLOCK = 4096


def _apply(matrix: Tensor, field: Tensor) -> Tensor:
    """(N, I, J) @ (N, J, *sp), elementwise: a matmul would be cast to half precision under autocast."""
    first, *rest = (column.reshape(*column.shape, *[1] * (field.ndim - 2)) for column in matrix.unbind(2))
    out = first * field[:, :1]
    for j, column in enumerate(rest, 1):
        out = torch.addcmul(out, column, field[:, j : j + 1])
    return out


def _to_field(grad_x: Tensor, matrix: Tensor | None) -> Tensor:
    if matrix is None:
        return grad_x
    # An entry that is not finite takes every sample out of view, where 0 times it should stay 0.
    return _apply(matrix[:, :, :-1].mT.nan_to_num(0.0, 0.0, 0.0), grad_x)


def _to_matrix(grad_x: Tensor, coords: Tensor, relative: bool) -> Tensor:
    points = _homogeneous(coords, relative)
    rows = [torch.stack([_sum(g * p) for p in points.unbind(1)], 1) for g in grad_x.unbind(1)]
    return torch.stack(rows, 1)


def _sum(values: Tensor) -> Tensor:
    """(N, *sp) -> (N,), axis by axis: torch splits one long sum among its threads, many short ones it does not."""
    if values.ndim == 2:  # a line: in blocks
        padding = -values.shape[1] % _SUM_BLOCK
        values = torch.nn.functional.pad(values, (0, padding)).unflatten(1, (-1, _SUM_BLOCK))
    while values.ndim > 1:
        values = values.sum(-1)
    return values


def _tangent(
    coords: Tensor, matrix: Tensor | None, dcoords: Tensor | None, dmatrix: Tensor | None, how: How
) -> Tensor | None:
    """The tangent of x."""
    _check_orders(how, dcoords is not None or dmatrix is not None)
    dx = dcoords
    if matrix is not None and dcoords is not None:
        dx = _apply(matrix[:, :, :-1], dcoords)
    if dmatrix is not None:
        moved = _apply(dmatrix, _homogeneous(coords, how.relative))
        dx = moved if dx is None else dx + moved
    return dx


def _check_orders(how: How, needed: bool) -> None:
    if needed and 0 in how.order:
        raise RuntimeError(
            "an interpolation of order 0 has no gradient in its coordinates: "
            "use order 1 or more on every axis, or detach them"
        )


def _coords_gradients(
    ctx: Any, grad_x: Callable[[], Tensor], coords: Tensor, matrix: Tensor | None, how: How, at: int
) -> tuple:
    """Gradients for (coords, matrix), which are inputs ``at`` and ``at + 1``."""
    need_coords, need_matrix = ctx.needs_input_grad[at], ctx.needs_input_grad[at + 1]
    if not (need_coords or need_matrix):
        return None, None
    _check_orders(how, True)
    g = grad_x()
    return (
        _to_field(g, matrix) if need_coords else None,
        _to_matrix(g, coords, how.relative) if need_matrix else None,
    )


# --- saving -------------------------------------------------------------------------------------------------------


def _save(ctx: Any, tensors: Sequence[Tensor | None], needed: Sequence[bool]) -> None:
    """Keep for the backward only what it needs; everything where forward mode is on, whose rule runs at once."""
    ctx.set_materialize_grads(False)  # so that a rule can tell an input without a tangent from one of zeros
    ctx.save_for_backward(*(t if n else None for t, n in zip(tensors, needed, strict=True)))
    if forward_ad._current_level >= 0:
        ctx.save_for_forward(*tensors)


def _outer(tensor: Tensor, vector: Tensor, k: int) -> Tensor:
    """(N, C, D^k, *sp) x (N, D, *sp) -> (N, C, D^(k+1), *sp)."""
    return tensor.unsqueeze(2 + k) * _aligned(vector, k)


def _inner(tensor: Tensor, vector: Tensor, k: int) -> Tensor:
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
    _save(ctx, (coeff, coords, matrix), (any(need_x), need_coeff or any(need_x), True))


def _sample_backward(ctx: Any, grad: Tensor | None) -> tuple:
    if grad is None:
        return (None,) * 8
    coeff, coords, matrix = ctx.saved_tensors
    grad_coeff = scatter(grad, coords, matrix, ctx.shape, ctx.k, ctx.how) if ctx.needs_input_grad[0] else None
    grads = _coords_gradients(
        ctx, lambda: contract(coeff, coords, matrix, grad, ctx.k, ctx.how), coords, matrix, ctx.how, 1
    )
    return grad_coeff, *grads, *[None] * 5


_sample_op = define(
    "sample",
    f"(Tensor coeff, Tensor coords, Tensor? matrix, int k, {_HOW}) -> Tensor",
    _sample_kernel,
    _sample_fake,
    _sample_backward,
    _sample_setup,
)


class _Sample(torch.autograd.Function):
    @staticmethod
    def forward(coeff, coords, matrix, k, *how):  # type: ignore[no-untyped-def]
        return _sample_op(coeff, coords, matrix, k, *how)

    setup_context = staticmethod(_sample_setup)
    backward = staticmethod(_sample_backward)

    @staticmethod
    def jvp(ctx, dcoeff, dcoords, dmatrix, *_):  # type: ignore[no-untyped-def]
        coeff, coords, matrix = ctx.saved_tensors
        k, how = ctx.k, ctx.how
        dx = _tangent(coords, matrix, dcoords, dmatrix, how)
        out = sample(dcoeff, coords, matrix, k, how) if dcoeff is not None else 0
        if dx is not None:
            out = out + _inner(sample(coeff, coords, matrix, k + 1, how), dx, k)
        return out

    @staticmethod
    def vmap(info, in_dims, coeff, coords, matrix, k, *how):  # type: ignore[no-untyped-def]
        coeff, coords, matrix = _fold(info.batch_size, in_dims, coeff, coords, matrix)
        return _unfold(info.batch_size, sample(coeff, coords, matrix, k, How(*how))), 0


# --- scatter ------------------------------------------------------------------------------------------------------


def _scatter_setup(ctx: Any, inputs: tuple, output: Tensor) -> None:
    value, coords, matrix, ctx.shape, ctx.k, *how = inputs
    ctx.how = How(*how)
    need_value, *need_x = ctx.needs_input_grad[:3]
    _save(ctx, (value, coords, matrix), (any(need_x), need_value or any(need_x), True))


def _scatter_backward(ctx: Any, grad: Tensor | None) -> tuple:
    if grad is None:
        return (None,) * 9
    value, coords, matrix = ctx.saved_tensors
    grad_value = sample(grad, coords, matrix, ctx.k, ctx.how) if ctx.needs_input_grad[0] else None
    grads = _coords_gradients(
        ctx, lambda: contract(grad, coords, matrix, value, ctx.k, ctx.how), coords, matrix, ctx.how, 1
    )
    return grad_value, *grads, *[None] * 6


_scatter_op = define(
    "scatter",
    f"(Tensor value, Tensor coords, Tensor? matrix, SymInt[] shape, int k, {_HOW}) -> Tensor",
    _scatter_kernel,
    _scatter_fake,
    _scatter_backward,
    _scatter_setup,
)


class _Scatter(torch.autograd.Function):
    @staticmethod
    def forward(value, coords, matrix, shape, k, *how):  # type: ignore[no-untyped-def]
        return _scatter_op(value, coords, matrix, shape, k, *how)

    setup_context = staticmethod(_scatter_setup)
    backward = staticmethod(_scatter_backward)

    @staticmethod
    def jvp(ctx, dvalue, dcoords, dmatrix, *_):  # type: ignore[no-untyped-def]
        value, coords, matrix = ctx.saved_tensors
        k, how = ctx.k, ctx.how
        dx = _tangent(coords, matrix, dcoords, dmatrix, how)
        out = scatter(dvalue, coords, matrix, ctx.shape, k, how) if dvalue is not None else 0
        if dx is not None:
            out = out + scatter(_outer(value, dx, k), coords, matrix, ctx.shape, k + 1, how)
        return out

    @staticmethod
    def vmap(info, in_dims, value, coords, matrix, shape, k, *how):  # type: ignore[no-untyped-def]
        value, coords, matrix = _fold(info.batch_size, in_dims, value, coords, matrix)
        return _unfold(info.batch_size, scatter(value, coords, matrix, shape, k, How(*how))), 0


# --- contract -----------------------------------------------------------------------------------------------------


def _contract_setup(ctx: Any, inputs: tuple, output: Tensor) -> None:
    coeff, coords, matrix, value, ctx.k, *how = inputs
    ctx.how, ctx.shape = How(*how), coeff.shape[2:]
    need_coeff, need_coords, need_matrix, need_value = ctx.needs_input_grad[:4]
    need_x = need_coords or need_matrix
    _save(ctx, (coeff, coords, matrix, value), (need_value or need_x, True, True, need_coeff or need_x))


def _contract_backward(ctx: Any, grad: Tensor | None) -> tuple:
    if grad is None:
        return (None,) * 9
    coeff, coords, matrix, value = ctx.saved_tensors
    k, how = ctx.k, ctx.how
    grad_coeff = (
        scatter(_outer(value, grad, k), coords, matrix, ctx.shape, k + 1, how) if ctx.needs_input_grad[0] else None
    )
    grads = _coords_gradients(
        ctx, lambda: contract(coeff, coords, matrix, _outer(value, grad, k), k + 1, how), coords, matrix, how, 1
    )
    grad_value = None
    if ctx.needs_input_grad[3]:
        grad_value = _inner(sample(coeff, coords, matrix, k + 1, how), grad, k)
    return grad_coeff, *grads, grad_value, *[None] * 5


_contract_op = define(
    "contract",
    f"(Tensor coeff, Tensor coords, Tensor? matrix, Tensor value, int k, {_HOW}) -> Tensor",
    _contract_kernel,
    _contract_fake,
    _contract_backward,
    _contract_setup,
)


class _Contract(torch.autograd.Function):
    @staticmethod
    def forward(coeff, coords, matrix, value, k, *how):  # type: ignore[no-untyped-def]
        return _contract_op(coeff, coords, matrix, value, k, *how)

    setup_context = staticmethod(_contract_setup)
    backward = staticmethod(_contract_backward)

    @staticmethod
    def jvp(ctx, dcoeff, dcoords, dmatrix, dvalue, *_):  # type: ignore[no-untyped-def]
        coeff, coords, matrix, value = ctx.saved_tensors
        k, how = ctx.k, ctx.how
        dx = _tangent(coords, matrix, dcoords, dmatrix, how)
        out = contract(dcoeff, coords, matrix, value, k, how) if dcoeff is not None else 0
        if dvalue is not None:
            out = out + contract(coeff, coords, matrix, dvalue, k, how)
        if dx is not None:
            out = out + contract(coeff, coords, matrix, _outer(value, dx, k), k + 1, how)
        return out

    @staticmethod
    def vmap(info, in_dims, coeff, coords, matrix, value, k, *how):  # type: ignore[no-untyped-def]
        coeff, coords, matrix, value = _fold(info.batch_size, in_dims, coeff, coords, matrix, value)
        return _unfold(info.batch_size, contract(coeff, coords, matrix, value, k, How(*how))), 0


# --- vmap: the mapped axis joins the batch ------------------------------------------------------------------------


def _fold(size: int, in_dims: Sequence[int | None], *tensors: Tensor | None) -> list[Tensor | None]:
    folded: list[Tensor | None] = []
    for tensor, dim in zip(tensors, in_dims, strict=False):
        if tensor is not None:
            mapped = tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
            tensor = mapped.flatten(0, 1)
        folded.append(tensor)
    return folded


def _unfold(size: int, out: Tensor) -> Tensor:
    return out.unflatten(0, (size, -1))


# --- the faces ----------------------------------------------------------------------------------------------------


def sample(coeff: Tensor, coords: Tensor, matrix: Tensor | None, k: int, how: How) -> Tensor:
    """All k-th derivatives of the interpolant of ``coeff``: (N, C, *in), (N, D, *out) -> (N, C, D^k, *out)."""
    call: Any = _sample_op if plain(coeff, coords, matrix) else _Sample.apply
    return call(coeff, coords, matrix, k, *how)


def scatter(value: Tensor, coords: Tensor, matrix: Tensor | None, shape: Sequence[int], k: int, how: How) -> Tensor:
    """The adjoint of ``sample`` in the coefficients: (N, C, D^k, *out), (N, D, *out) -> (N, C, *shape)."""
    call: Any = _scatter_op if plain(value, coords, matrix) else _Scatter.apply
    return call(value, coords, matrix, list(shape), k, *how)


def contract(coeff: Tensor, coords: Tensor, matrix: Tensor | None, value: Tensor, k: int, how: How) -> Tensor:
    """The gradient of <value, sample_k(coeff)> in the coordinates x: (N, D, *out)."""
    call: Any = _contract_op if plain(coeff, coords, matrix, value) else _Contract.apply
    return call(coeff, coords, matrix, value, k, *how)
