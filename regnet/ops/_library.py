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
    backward: Callable | None = None,
    setup: Callable | None = None,
) -> Any:
    """Register ``regnet::name`` with its kernel, its shape function and its derivative if any, and return it."""
    qualified = f"regnet::{name}"
    torch.library.define(qualified, schema)
    torch.library.impl(qualified, ("cpu", "cuda"), kernel)
    torch.library.register_fake(qualified, fake)
    if backward is not None:
        torch.library.register_autograd(qualified, backward, setup_context=setup)
    return getattr(torch.ops.regnet, name).default


def plain(*tensors: Tensor | None) -> bool:
    """Whether the registered op will do: compiled, or no derivative and no transform in sight.

    The other face, an ``autograd.Function``, costs twice as much to call.
    """
    if torch.compiler.is_compiling():
        return True
    if torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0:
        return False
    return not (torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors))


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

    op = define(name, f"(Tensor image, {arguments}) -> Tensor", forward, empty, transpose, setup)

    class Face(torch.autograd.Function):
        @staticmethod
        def forward(image: Tensor, *args: Any) -> Tensor:
            return op(image, *args)

        setup_context = staticmethod(setup)
        backward = staticmethod(transpose)

        @staticmethod
        def jvp(ctx: Any, dimage: Tensor, *_: Any) -> Tensor:
            return apply(dimage, *ctx.args)

        @staticmethod
        def vmap(info: Any, in_dims: tuple, image: Tensor, *args: Any) -> tuple[Tensor, int]:
            out = apply(image.movedim(in_dims[0], 0).flatten(0, 1), *args)
            return out.unflatten(0, (info.batch_size, -1)), 0

    def apply(image: Tensor, *args: Any) -> Tensor:
        call: Any = op if plain(image) else Face.apply
        return call(image, *args)

    return apply
