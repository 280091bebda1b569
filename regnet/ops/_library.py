"""Registering operators with torch.

``torch.library.custom_op`` would do, but imports ``torch._dynamo`` (seconds) at the first call of every process.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad


def define(
    name: str,
    schema: str,
    kernel: Callable,
    fake: Callable,
    backward: Callable | None,
    setup: Callable | None,
    jvp: Callable | None,
    vmap: Callable,
) -> Callable[..., Tensor]:
    """Make an operator with two faces that share one backward.

    One is registered as ``regnet::name``, which ``torch.compile`` sees; the other is an ``autograd.Function``, which
    also knows forward mode and ``vmap``. The first alone gives silent zeros in forward mode; the second costs twice as
    much to call.

    Args:
        name, schema: of the operator in ``torch.ops.regnet``.
        kernel, fake: what it does on any device, and the shape of what comes out.
        backward, setup, jvp: its derivatives, as an ``autograd.Function`` has them; None: it has none.
        vmap: how it is mapped.

    Returns:
        The operator, which chooses its face.
    """
    qualified = f"regnet::{name}"
    torch.library.define(qualified, schema)
    torch.library.impl(qualified, "default", kernel)
    torch.library.register_fake(qualified, fake)
    if backward is not None:
        torch.library.register_autograd(qualified, backward, setup_context=setup)
    op: Any = getattr(torch.ops.regnet, name).default
    rules = {
        "forward": op,
        "setup_context": setup or _not_differentiable,
        "backward": backward,
        "jvp": jvp,
        "vmap": vmap,
    }
    face: Any = type(name, (torch.autograd.Function,), {k: staticmethod(rule) for k, rule in rules.items() if rule})

    def call(*args: Any) -> Tensor:
        return op(*args) if _plain(args) else face.apply(*args)

    return call


def _not_differentiable(ctx: Any, inputs: tuple, output: Tensor) -> None:
    ctx.mark_non_differentiable(output)


def _plain(args: Sequence[Any]) -> bool:
    """Whether the registered op will do: compiled, or no derivative and no transform in sight."""
    if torch.compiler.is_compiling():
        return True
    if torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0:
        return False
    return not (torch.is_grad_enabled() and any(isinstance(a, Tensor) and a.requires_grad for a in args))


def save(ctx: Any, tensors: Sequence[Tensor | None], needed: Sequence[bool]) -> None:
    """Keep for the backward only what it needs; everything where forward mode is on, whose rule runs at once."""
    ctx.set_materialize_grads(False)  # so that a rule can tell an input without a tangent from one of zeros
    ctx.save_for_backward(*(t if n else None for t, n in zip(tensors, needed, strict=True)))
    if forward_ad._current_level >= 0:
        ctx.save_for_forward(*tensors)


def fold(size: int, in_dims: Sequence[int | None], *tensors: Tensor | None) -> list[Tensor | None]:
    folded: list[Tensor | None] = []
    for tensor, dim in zip(tensors, in_dims, strict=False):
        if tensor is not None:
            mapped = tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
            tensor = mapped.flatten(0, 1)
        folded.append(tensor)
    return folded


def unfold(size: int, out: Tensor) -> Tensor:
    return out.unflatten(0, (size, -1))


def define_linear(
    name: str,
    arguments: str,
    kernel: Callable[..., None],
    transposed: Callable[..., tuple],
    shape: Callable[..., Sequence[int]] = lambda image, *_: image.shape[2:],
) -> Callable[..., Tensor]:
    """Make a linear map of images differentiable in every mode.

    Args:
        name: of the operator, in ``torch.ops.regnet``.
        arguments: schema of what follows the image.
        kernel: ``kernel(image, out, *arguments)`` fills ``out``, which is contiguous; ``image`` may not be.
        transposed: spatial shape of the image, arguments -> the arguments that give the adjoint map.
        shape: image, arguments -> the spatial shape of the result; that of the image if not given.
    """

    def forward(image: Tensor, *args: Any) -> Tensor:
        out = empty(image, *args)
        if out.numel():
            kernel(image, out, *args)
        return out

    def empty(image: Tensor, *args: Any) -> Tensor:
        sizes = [*image.shape[:2], *shape(image, *args)]
        return torch.empty(sizes, dtype=image.dtype, device=image.device)

    def setup(ctx: Any, inputs: tuple, output: Tensor) -> None:
        image, *ctx.args = inputs
        ctx.sizes = image.shape[2:]

    def transpose(ctx: Any, grad: Tensor) -> tuple:
        return apply(grad, *transposed(ctx.sizes, *ctx.args)), *[None] * len(ctx.args)

    def jvp(ctx: Any, dimage: Tensor, *_: Any) -> Tensor:
        return apply(dimage, *ctx.args)

    def vmap(info: Any, in_dims: tuple, image: Tensor, *args: Any) -> tuple[Tensor, int]:
        return unfold(info.batch_size, apply(*fold(info.batch_size, in_dims, image), *args)), 0

    apply = define(name, f"(Tensor image, {arguments}) -> Tensor", forward, empty, transpose, setup, jvp, vmap)
    return apply
