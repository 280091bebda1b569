"""The numbers of a rigid or affine map: how many, how far they move, and what they leave alone."""

import pytest
import torch

from regnet.inference.affine.parameters import generators, map_matrix, shift_matrix

CENTRE = {2: torch.tensor([3.0, -2.0], dtype=torch.float64), 3: torch.tensor([3.0, -2.0, 5.0], dtype=torch.float64)}


def drawn(count: int, parameters: int) -> torch.Tensor:
    return torch.randn(count, parameters, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("ndim", [2, 3])
def test_rigid_maps_have_turns_and_shifts_and_affine_maps_all_linear_ones(ndim: int) -> None:
    rigid, affine = generators(ndim, "rigid", 40.0), generators(ndim, "affine", 40.0)
    assert len(rigid) == ndim * (ndim + 1) // 2
    assert len(affine) == ndim * (ndim + 1)
    assert int(torch.linalg.matrix_rank(affine.flatten(1))) == len(affine)
    assert float((affine.flatten(1) @ affine.flatten(1).T - torch.eye(len(affine))).abs().tril(-1).max()) < 1e-15


@pytest.mark.parametrize("ndim", [2, 3])
def test_rigid_maps_keep_all_distances(ndim: int) -> None:
    basis = generators(ndim, "rigid", 40.0)
    maps = map_matrix(30 * drawn(4, len(basis)), torch.eye(ndim + 1, dtype=torch.float64), basis, CENTRE[ndim])
    linear = maps[:, :-1, :-1]
    torch.testing.assert_close(linear @ linear.mT, torch.eye(ndim, dtype=torch.float64).expand_as(linear))
    torch.testing.assert_close(torch.linalg.det(linear), torch.ones(4, dtype=torch.float64))


@pytest.mark.parametrize("kind", ["rigid", "affine"])
def test_a_parameter_of_1_moves_points_at_the_radius_by_a_millimetre_at_most(kind: str) -> None:
    basis, centre = generators(3, kind, 80.0), CENTRE[3]
    points = torch.nn.functional.normalize(drawn(500, 3), dim=1) * 80 + centre
    for one in torch.eye(len(basis), dtype=torch.float64):
        matrix = map_matrix(one[None], torch.eye(4, dtype=torch.float64), basis, centre)[0]
        away = (points @ matrix[:3, :3].T + matrix[:3, 3] - points).norm(dim=1)
        assert 0.8 < float(away.max()) < 1.02


def test_no_parameters_leave_the_start_and_turns_leave_the_centre() -> None:
    start, basis = shift_matrix(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)), generators(3, "affine", 50.0)
    torch.testing.assert_close(map_matrix(torch.zeros(1, 12, dtype=torch.float64), start, basis, CENTRE[3])[0], start)
    numbers = drawn(1, 12)
    numbers[:, :3] = 0  # no shift
    matrix = map_matrix(numbers, start, basis, CENTRE[3])[0]
    torch.testing.assert_close(matrix[:3, :3] @ CENTRE[3] + matrix[:3, 3], CENTRE[3] + start[:3, 3])


def test_the_derivative_is_exact() -> None:
    basis = generators(2, "affine", 20.0)
    start = shift_matrix(torch.tensor([1.0, -1.0], dtype=torch.float64))
    numbers = drawn(2, 6).requires_grad_(True)
    assert torch.autograd.gradcheck(lambda p: map_matrix(p, start, basis, CENTRE[2]), numbers, rtol=1e-6)


def test_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="rigid, affine"):
        generators(3, "similarity", 1.0)
