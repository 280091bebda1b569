"""Where the search begins: even turns, centres of mass, principal axes."""

import math

import pytest
import torch

from regnet.inference.affine import starts
from regnet.inference.affine.level import Layer
from regnet.spatial import Grid
from tests.spatial.worlds import rotation


@pytest.mark.parametrize(("ndim", "count"), [(2, 12), (3, 60)])
def test_the_turns_are_a_group_and_the_first_is_none(ndim: int, count: int) -> None:
    turns = starts.even_turns(ndim)
    assert turns.shape == (count, ndim, ndim)
    torch.testing.assert_close(turns[0], torch.eye(ndim, dtype=torch.float64))
    torch.testing.assert_close(torch.linalg.det(turns), torch.ones(count, dtype=torch.float64))
    products = torch.einsum("aij,bjk->abik", turns, turns).reshape(-1, 1, ndim * ndim)
    assert float((products - turns.reshape(1, count, -1)).abs().amax(-1).amin(-1).max()) < 1e-12


def test_no_turn_of_space_is_far_from_one_of_them() -> None:
    # The 60 rotations of the icosahedron cover all others within 44.48 degrees.
    draw = torch.Generator().manual_seed(2)
    others, _ = torch.linalg.qr(torch.randn(500, 3, 3, generator=draw, dtype=torch.float64))
    others = others * torch.linalg.det(others)[:, None, None]
    traces = torch.einsum("aij,bij->ab", others, starts.even_turns(3)).amax(1)
    assert math.degrees(math.acos((float(traces.min()) - 1) / 2)) < 44.5


def test_moments_of_a_box_are_those_of_the_formula() -> None:
    # 6 x 4 x 2 voxels of 1 x 2 x 3 mm: variances (n^2 - 1) / 12 in voxels, about the middle voxel (4.5, 3.5, 2.5).
    grid = Grid((12, 10, 7), torch.diag(torch.tensor([1.0, 2.0, 3.0, 1.0], dtype=torch.float64)))
    data = torch.zeros(1, 1, *grid.shape)
    data[..., 2:8, 2:6, 2:4] = 0.7
    centre, spread = starts.moments_of(Layer(data, torch.ones_like(data), grid))
    torch.testing.assert_close(centre, torch.tensor([4.5, 7.0, 7.5], dtype=torch.float64))
    variances = torch.tensor([35 / 12, 4 * 15 / 12, 9 * 3 / 12], dtype=torch.float64)
    torch.testing.assert_close(spread, torch.diag(variances))


@pytest.mark.parametrize("ndim", [2, 3])
def test_one_of_the_principal_turns_undoes_a_turn(ndim: int) -> None:
    spread = torch.diag(torch.tensor([9.0, 4.0, 1.0], dtype=torch.float64)[:ndim])
    turn = rotation(ndim, 50.0)
    found = starts.principal_turns(spread, turn @ spread @ turn.T)
    assert len(found) == 2 ** (ndim - 1)
    assert float((found - turn).abs().amax((1, 2)).min()) < 1e-9
