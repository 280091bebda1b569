"""Sums over windows: against sums written out, and the precision of long ones."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from regnet import ops
from tests import reference
from tests.ops.cases import CHECK, LAYOUTS, close, laid_out


@pytest.mark.parametrize("shape", [(11,), (7, 9), (6, 5, 8), (1, 3, 1)], ids=str)
@pytest.mark.parametrize("window", [1, 3, 5, 23])
def test_box_sum_adds_up_the_window(shape: tuple[int, ...], window: int) -> None:
    for dtype, tolerance in ((torch.float32, 1e-4), (torch.float64, 1e-12)):
        for layout in LAYOUTS:
            image = laid_out(torch.randn(2, 3, *shape, dtype=dtype), layout)
            got = ops.box_sum(image, window)
            assert got.dtype == dtype
            close(got, reference.box_sum(image, window), tolerance)


def test_box_sum_takes_a_window_per_axis_and_is_its_own_adjoint() -> None:
    x, y = (torch.randn(2, 2, 7, 6, 5, dtype=torch.float64, requires_grad=True) for _ in range(2))
    window = (3, 1, 5)
    close(ops.box_sum(x, window), reference.box_sum(x, window))
    summed = ops.box_sum(x, window)
    (back,) = torch.autograd.grad(summed, x, y)
    close(back, reference.box_sum(y, window))
    small = torch.randn(1, 1, 3, 4, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: ops.box_sum(x, 3), (small,), check_forward_ad=True, **CHECK)
    assert gradgradcheck(lambda x: ops.box_sum(x, 3).square(), (small,), **CHECK)


def test_box_sum_keeps_its_precision_after_large_values() -> None:
    image = torch.ones(1, 1, 4, 300)
    image[..., :20] = 1e6
    got = ops.box_sum(image, 5)[0, 0, 2:, 30:-2]
    assert (got - torch.tensor([20.0, 15.0])[:, None]).abs().max() < 1e-3
