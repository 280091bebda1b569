"""The inverse of a field: closed forms, and that it undoes the field."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from regnet import ops
from tests.ops.cases import CHECK, close, constant


def swirl(shape: tuple[int, ...], reach: float = 1.5) -> Tensor:
    """A smooth field that vanishes on the faces, so that what lies outside does not matter."""
    grid = ops.identity(shape, dtype=torch.float64)
    bump = torch.ones(1, 1, *shape, dtype=torch.float64)
    for d, n in enumerate(shape):
        bump = bump * torch.sin(math.pi * grid[:, d : d + 1] / (n - 1))
    return bump * reach * torch.cos(grid / 5 + torch.arange(len(shape)).reshape(1, -1, *[1] * len(shape)))


@pytest.mark.parametrize("shape", [(20,), (17, 20), (12, 15, 13)], ids=str)
def test_the_inverse_undoes_the_field(shape: tuple[int, ...]) -> None:
    flow = swirl(shape)
    inverse = ops.invert(flow, 50, 1e-6)
    close(inverse + ops.warp(flow, inverse), torch.zeros_like(flow), 1e-5)
    close(ops.compose(flow, inverse), torch.zeros_like(flow), 1e-5)
    coarse = ops.invert(flow)
    assert (coarse + ops.warp(flow, coarse)).abs().max() < 2e-3
    assert ops.invert(flow.float()).dtype == torch.float32


def test_the_inverse_of_a_translation_is_the_opposite_translation() -> None:
    flow = constant((1.5, -2.25), (6, 7))
    close(ops.invert(flow), -flow, 1e-12)


@pytest.mark.parametrize("factor", [-0.9, 0.5, 1.5, 4.0])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_steep_fields_are_inverted_as_long_as_they_do_not_fold(ndim: int, factor: float) -> None:
    """u = f (p - c) takes p to c + (1 + f) (p - c); its inverse is v = -f / (1 + f) (p - c), where that is in view."""
    shape = (17, 12, 9)[:ndim]
    centre = torch.tensor([(n - 1) / 2 for n in shape], dtype=torch.float64).view(1, ndim, *[1] * ndim)
    offset = ops.identity(shape, dtype=torch.float64) - centre
    inverse = ops.invert(factor * offset, tolerance=1e-8)
    inside = ((offset / (1 + factor)).abs() <= centre).all(1, keepdim=True)
    close(torch.where(inside, inverse, 0.0), torch.where(inside, -factor / (1 + factor) * offset, 0.0), 1e-8)


def test_a_rotation_by_a_right_angle_is_inverted() -> None:
    """Its slope is no contraction: p -> c + R (p - c), with u = (R - 1)(p - c) and v = (R^T - 1)(p - c).

    A corner has a second origin outside the grid, where the field goes on as it was at the border.
    """
    offset = ops.identity((9, 9), dtype=torch.float64) - 4
    turned = torch.cat([-offset[:, 1:], offset[:, :1]], 1)
    inverse = ops.invert(turned - offset, tolerance=1e-8)
    close(inverse[..., 1:-1, 1:-1], (-turned - offset)[..., 1:-1, 1:-1], 1e-8)


def test_a_folding_field_is_told_and_the_rest_of_it_inverted() -> None:
    x = ops.identity((40,), dtype=torch.float64)
    flow = 6 * torch.exp(-(((x - 20) / 2) ** 2))
    with pytest.warns(RuntimeWarning, match=r"of the voxels have no inverse .* the field folds there"):
        inverse = ops.invert(flow)
    missing = (inverse + ops.warp(flow, inverse, bound="replicate")).abs()
    assert inverse.isfinite().all() and missing[..., :12].max() < 1e-3 and missing[..., 30:].max() < 1e-3


def test_derivatives_of_the_inverse_are_finite_differences() -> None:
    """Also where the iterations stopped early: the last two steps make up for it."""
    flow = (swirl((5, 6)) + 0.05 * torch.randn(2, 2, 5, 6, dtype=torch.float64)).requires_grad_()
    one = flow[:1].detach().requires_grad_()
    for order in (1, 3):
        assert gradcheck(lambda u, o=order: ops.invert(u, 50, 1e-4, o), (flow,), check_forward_ad=True, **CHECK)
        assert gradgradcheck(lambda u, o=order: ops.invert(u, 50, 1e-4, o), (one,), check_fwd_over_rev=True, **CHECK)
