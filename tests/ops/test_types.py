"""Storage types: half precision in and out, single precision within; autocast; batches of one without a copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from regnet import ops
from tests.ops.test_memory import peak_of

HALVES = (torch.float16, torch.bfloat16)
every_half = pytest.mark.parametrize("dtype", HALVES, ids=str)

SHAPE = (6, 5, 4)
# name -> the operator over an image and a field, and which of the two gives the result its type
OPERATORS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], str]] = {
    "pull": (lambda v, x: ops.pull(v, x, 3), "image"),
    "grad": (lambda v, x: ops.grad(v, x, 2), "image"),
    "hess": (lambda v, x: ops.hess(v, x, 3), "image"),
    "push": (lambda v, x: ops.push(v, x, SHAPE, 3), "image"),
    "count": (lambda v, x: ops.count(x, SHAPE), "field"),
    "warp": (lambda v, x: ops.warp(v, x, 3, "dct1"), "image"),
    "warp with a matrix": (lambda v, x: ops.warp(v, x, 1, matrix=x[:, :, 0, 0]), "image"),
    "compose": (lambda v, x: ops.compose(v, x, 3), "image"),
    "integrate": (lambda v, x: ops.integrate(x, 5), "field"),
    "invert": (lambda v, x: ops.invert(x * 0.25, 5), "field"),
    "prefilter": (lambda v, x: ops.prefilter(v, 5), "image"),
    "resize": (lambda v, x: ops.resize(v, (7, 5, 6), order=3), "image"),
    "resize_flow": (lambda v, x: ops.resize_flow(x, (7, 5, 6)), "field"),
    "restrict": (lambda v, x: ops.restrict(v, (3, 5, 2), order=3, normalize=True), "image"),
    "ffd": (lambda v, x: ops.ffd(x, (9, 5, 3), (4.5, 3, 4)), "field"),
    "jacobian": (lambda v, x: ops.jacobian(x), "field"),
    "jacobian_determinant": (lambda v, x: ops.jacobian_determinant(x), "field"),
    "box_sum": (lambda v, x: ops.box_sum(v, 3), "image"),
    "Spline": (lambda v, x: ops.Spline(v, 3).gradient(x), "image"),
    "SamplingOperator": (lambda v, x: ops.SamplingOperator(x, SHAPE, 3, prefilter=True) @ v, "image"),
    "its adjoint": (lambda v, x: ops.SamplingOperator(x, SHAPE, 3, prefilter=True).T @ v, "image"),
    "grid_sample": (lambda v, x: ops.grid_sample(v, x.movedim(1, -1), "bicubic"), "image"),
    "grid_sample_adjoint": (lambda v, x: ops.grid_sample_adjoint(v, x.movedim(1, -1), SHAPE), "image"),
}


def leaves(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(0)
    image, field = (torch.randn(1, 3, *SHAPE, generator=random).to(dtype) for _ in range(2))
    return image.requires_grad_(), field.requires_grad_()


@every_half
@pytest.mark.parametrize("name", OPERATORS)
def test_half_storage_gives_the_rounded_result_of_single_precision(name: str, dtype: torch.dtype) -> None:
    run, _ = OPERATORS[name]
    half = leaves(dtype)
    single = tuple(x.detach().float().requires_grad_() for x in half)
    got, want = run(*half), run(*single)
    assert got.dtype == dtype
    assert torch.equal(got, want.to(dtype))
    gradients, truth = (
        torch.autograd.grad(out, inputs, torch.ones_like(out), allow_unused=True)
        for out, inputs in ((got, half), (want, single))
    )
    for g, t in zip(gradients, truth, strict=True):
        assert (g is None) == (t is None)
        if g is not None and t is not None:
            assert g.dtype == dtype
            torch.testing.assert_close(g.float(), t, rtol=2 * torch.finfo(dtype).eps, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in OPERATORS if name != "compose"])
@pytest.mark.parametrize(("of_image", "of_field"), [(torch.float16, torch.float32), (torch.float64, torch.bfloat16)])
def test_the_result_has_its_images_type_and_each_gradient_its_leafs(
    name: str, of_image: torch.dtype, of_field: torch.dtype
) -> None:
    run, giver = OPERATORS[name]
    image, field = leaves(of_image)[0], leaves(of_field)[1]
    out = run(image, field)
    assert out.dtype == (of_image if giver == "image" else of_field)
    for leaf, gradient in zip(
        (image, field), torch.autograd.grad(out.sum(), (image, field), allow_unused=True), strict=True
    ):
        assert gradient is None or gradient.dtype == leaf.dtype


@every_half
def test_c12_many_ones_are_added_up_in_single_precision(dtype: torch.dtype) -> None:
    value, coords = torch.ones(1, 1, 4096, dtype=dtype), torch.zeros(1, 1, 4096, dtype=dtype)
    assert ops.push(value, coords, (2,)).flatten().tolist() == [4096, 0]
    assert ops.count(coords, (2,)).flatten().tolist() == [4096, 0]


def test_a_half_typed_flow_is_added_to_its_voxel_in_single_precision() -> None:
    # float16 holds 1000.25 as 1000.5, and no odd voxel above 2048
    ramp = torch.arange(3000.0)[None, None]
    flow = torch.full((1, 1, 3000), 0.25, dtype=torch.float16)
    assert torch.equal(ops.warp(ramp, flow)[..., :-1], (ramp + 0.25)[..., :-1])


@pytest.mark.parametrize("order", range(8))
def test_c14_under_autocast_the_operator_works_as_outside(order: int) -> None:
    network = torch.nn.Conv2d(1, 2, 3, padding=1)
    image = torch.randn(2, 1, 9, 8, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        flow = network(image.detach())
        assert flow.dtype == torch.bfloat16
        flow = flow if order else flow.detach()
        out = ops.warp(image, flow, order)
        loss = out.square().mean()
    assert out.dtype == torch.float32
    assert torch.equal(out, ops.warp(image, flow.float(), order))
    loss.backward()
    assert image.grad is not None and image.grad.dtype == torch.float32
    (want,) = torch.autograd.grad(ops.warp(image, flow.detach(), order).square().mean(), image)
    assert torch.equal(image.grad, want)
    if order:
        assert network.weight.grad is not None and network.weight.grad.dtype == torch.float32
        assert network.weight.grad.any()


@pytest.mark.parametrize("name", OPERATORS)
def test_c14_no_operator_is_changed_by_autocast(name: str) -> None:
    run, _ = OPERATORS[name]
    inputs = leaves(torch.float32)

    def values() -> tuple[Tensor, ...]:
        out = run(*inputs)
        return out, *(g for g in torch.autograd.grad(out.sum(), inputs, allow_unused=True) if g is not None)

    outside = values()
    with torch.autocast("cpu", torch.bfloat16):
        inside = values()
    for a, b in zip(inside, outside, strict=True):
        assert a.dtype == b.dtype and torch.equal(a, b)


BATCH, SIZE = 8, (20, 21, 22)
VOXELS = int(np.prod(SIZE))
FORWARD: dict[str, tuple[Callable[..., Tensor], int]] = {  # and how many images one item of the result is
    "pull": (lambda v, x, m: ops.pull(v, x), 1),
    "cubic pull": (lambda v, x, m: ops.pull(v, x, 3), 1),
    "grad": (lambda v, x, m: ops.grad(v, x, 1), 3),
    "push": (lambda v, x, m: ops.push(v, x, SIZE), 1),
    "warp": (lambda v, x, m: ops.warp(v, x, 1, matrix=m), 1),
}


@pytest.mark.parametrize("single", ["image", "field"])
@pytest.mark.parametrize("name", FORWARD)
def test_a_batch_of_one_is_broadcast_without_a_copy(name: str, single: str) -> None:
    run, images = FORWARD[name]
    v = torch.randn(1 if single == "image" else BATCH, 1, *SIZE)
    x = torch.randn(1 if single == "field" else BATCH, 3, *SIZE)
    m = torch.eye(3, 4)[None]
    peak = peak_of(lambda: run(v, x, m))
    assert peak <= 4 * images * BATCH * VOXELS + 65536
    want = run(v.expand(BATCH, -1, -1, -1, -1).contiguous(), x.expand(BATCH, -1, -1, -1, -1).contiguous(), m)
    assert torch.equal(run(v, x, m), want)


@pytest.mark.parametrize("name", FORWARD)
def test_the_gradient_of_a_batch_of_one_is_the_sum_over_the_batch(name: str) -> None:
    run, _ = FORWARD[name]
    random = torch.Generator().manual_seed(0)

    def drawn(*size: int) -> Tensor:
        return torch.randn(size, generator=random, dtype=torch.float64)

    sizes: tuple[Any, ...] = ((1, 20, 21, 22), (3, 20, 21, 22), (3, 4))
    whole = [drawn(3, *size) for size in sizes]
    for one in range(3):
        inputs = [t[:1].clone().requires_grad_() if k == one else t for k, t in enumerate(whole)]
        spread = [t.detach().expand(3, *t.shape[1:]).clone().requires_grad_() for t in inputs]
        if one == 2 and name != "warp":
            continue
        out, want = run(*inputs), run(*spread)
        cotangent = drawn(*out.shape)
        (got,) = torch.autograd.grad(out, inputs[one], cotangent)
        (each,) = torch.autograd.grad(want, spread[one], cotangent)
        torch.testing.assert_close(got, each.sum(0, keepdim=True), rtol=1e-10, atol=1e-10)
