"""Jacobians of maps: closed forms, and the oracle's differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from regnet import ops
from tests import reference
from tests.ops.cases import CHECK, LAYOUTS, close, laid_out

SHAPES = [(9,), (5, 6), (4, 5, 3)]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


@pytest.mark.parametrize("shape", [(6,), (5, 6), (4, 5, 3), (4, 1, 2), (1, 1, 3)], ids=str)
def test_the_jacobian_is_central_inside_and_one_sided_on_faces(shape: tuple[int, ...]) -> None:
    flow = torch.randn(2, len(shape), *shape, dtype=torch.float64)
    close(ops.jacobian(flow), reference.jacobian(flow))
    close(ops.jacobian_determinant(flow), reference.jacobian_determinant(flow))
    for layout in LAYOUTS:
        given = laid_out(flow.float(), layout)
        close(ops.jacobian_determinant(given), reference.jacobian_determinant(given), 1e-4)


@pytest.mark.parametrize(
    ("field", "determinant"),
    [
        (lambda p: torch.zeros_like(p), 1.0),
        (lambda p: 0.5 * p, None),
        (lambda p: torch.cat([-2 * p[:, :1], 0 * p[:, 1:]], 1), -1.0),
        (lambda p: torch.cat([0.3 * p[:, 1:2], 0 * p[:, 1:]], 1), 1.0),
        (lambda p: torch.cat([p[:, 1:2] - p[:, :1], p[:, :1] - p[:, 1:2], 0 * p[:, 2:]], 1), -1.0),
    ],
    ids=["zero", "growth", "reflection", "shear", "folding"],
)
@pytest.mark.parametrize("ndim", [2, 3])
def test_c25_determinants_of_linear_maps(
    field: Callable[[Tensor], Tensor], determinant: float | None, ndim: int
) -> None:
    flow = field(ops.identity((6, 5, 7)[:ndim], dtype=torch.float64))
    want = 1.5**ndim if determinant is None else determinant
    close(ops.jacobian_determinant(flow), np.full((1, 1, *flow.shape[2:]), want), 1e-12)


def test_c26_where_the_moving_structure_is_enlarged_the_determinant_is_below_one() -> None:
    p = ops.identity((20, 21, 22), dtype=torch.float64)
    flow = (p - 10) / 1.5 - (p - 10)
    determinant = ops.jacobian_determinant(flow)
    close(determinant, np.full(determinant.shape, 1.5**-3), 1e-12)
    assert determinant.log().mean().item() == pytest.approx(-1.216, abs=1e-3)


@every_shape
def test_gradients_of_the_jacobian_are_finite_differences(shape: tuple[int, ...]) -> None:
    flow = torch.randn(1, len(shape), *[min(n, 3) for n in shape], dtype=torch.float64, requires_grad=True)
    assert gradcheck(ops.jacobian, (flow,), **CHECK)
    assert gradcheck(ops.jacobian_determinant, (flow,), **CHECK)
    assert gradgradcheck(ops.jacobian_determinant, (flow,), **CHECK)
