"""The inverse of any map on any grid, and how maps change volumes."""

import pytest
import torch

from regnet import metrics, ops
from regnet.spatial import Affine, Composite, Displacement, Grid, Velocity, chain, determinant, invert

from .test_algebra import make, turn
from .worlds import centres, fixed_grid, moving_grid, smooth_flow


@pytest.mark.parametrize("ndim", (2, 3))
@pytest.mark.parametrize("kind", ("affine", "displacement", "velocity", "ffd", "composite"))
def test_forward_after_the_inverse_ends_where_it_began(kind: str, ndim: int) -> None:
    transform, grid = make(kind, ndim), moving_grid(ndim)
    found = invert(transform, grid, iterations=40)
    assert found.transform.grid == grid and found.residual.shape == found.found.shape == (1, *grid.shape)
    back = transform.map_points(found.transform.map_points(centres(grid)))
    missed = (back - centres(grid)).norm(dim=-1)
    assert torch.allclose(missed.float(), found.residual[0], atol=1e-3)
    # The turned control points fold in places; elsewhere a thousandth of a voxel of at most 1.75 mm is left.
    assert float(found.found.float().mean()) > (0.97 if kind in ("ffd", "composite") else 0.9999)
    assert float(missed[found.found[0]].max()) < 3e-3


@pytest.mark.parametrize("ndim", (2, 3))
def test_a_map_far_from_the_grid_is_inverted_too(ndim: int) -> None:
    # The field lies 100 mm away from the moving image, and the affine map brings it there.
    grid = fixed_grid(ndim)
    matrix = turn(ndim).matrix.clone()
    matrix[:-1, -1] += 100
    transform = chain([Displacement(smooth_flow(grid, 1.5), grid), Affine(matrix)])
    moving = Grid(grid.shape, matrix @ grid.affine)
    found = invert(transform, moving)
    assert bool(found.found.all()) and float(found.residual.max()) < 3e-3


@pytest.mark.parametrize("ndim", (2, 3))
def test_a_fold_is_found_where_it_is(ndim: int) -> None:
    # Along axis 0, u = -2 (p - 10) for 9 <= p <= 11: p + u runs backwards there, from 11 to 9.
    grid = Grid((24, 9, 8)[:ndim], torch.eye(ndim + 1))
    p = torch.arange(24.0)
    u = torch.where(
        (p - 10).abs() <= 1, -2 * (p - 10), torch.sign(p - 10) * -2 * (1 - ((p - 10).abs() - 1) / 8).clamp(0)
    )
    flow = torch.zeros(ndim, *grid.shape)
    flow[0] = u.reshape(-1, *[1] * (ndim - 1))
    jacobian = determinant(Displacement(flow, grid), grid)
    assert set((jacobian[0].flatten(1)[:, 0] <= 0).nonzero().flatten().tolist()) == {10}
    # Forward is many to one, not nothing to one: what has several inverses gets one of them.
    assert float(invert(Displacement(flow, grid), grid).found.float().mean()) > 0.8


@pytest.mark.parametrize("ndim", (2, 3))
def test_affine_parts_are_left_out_of_the_determinant_wherever_they_stand(ndim: int) -> None:
    grid = fixed_grid(ndim)
    field = Displacement(smooth_flow(grid, 1.0), grid)
    plain = determinant(field, grid)
    assert plain.shape == (1, *grid.shape)
    volume = float(torch.linalg.det(turn(ndim).matrix))
    whole = chain([field, turn(ndim)])
    assert torch.allclose(determinant(whole, grid), plain * volume, atol=1e-4)
    assert torch.allclose(determinant(whole, grid, total=False), plain, atol=1e-4)
    assert torch.allclose(determinant(turn(ndim), grid), torch.full((1, *grid.shape), volume), atol=1e-4)
    assert torch.allclose(determinant(turn(ndim), grid, total=False), torch.ones(1, *grid.shape), atol=1e-4)
    # In front, the affine map only moves the place where the field is met.
    before = determinant(Composite((turn(ndim), field)), grid, total=False)
    assert float((before - 1).abs().max()) < 2 * float((plain - 1).abs().max())


@pytest.mark.parametrize("ndim", (2, 3))
def test_a_velocity_and_its_reverse_cancel_to_a_twentieth_of_a_voxel(ndim: int) -> None:
    grid = fixed_grid(ndim)
    forward = Velocity(smooth_flow(grid, 2.5), grid)
    points = centres(grid)[(slice(4, -4),) * ndim]
    assert (forward.map_points(points) - points).norm(dim=-1).max() > 2.5
    back = forward.inverse().map_points(forward.map_points(points))
    assert (grid.to_voxel(back) - grid.to_voxel(points)).abs().max() < 0.05


@pytest.mark.parametrize("voxels", (1, 3, 5, 8))
@pytest.mark.parametrize("ndim", (2, 3))
def test_forward_after_the_inverse_of_a_velocity_misses_less_than_a_twentieth_of_a_voxel(
    ndim: int, voxels: float
) -> None:
    grid = fixed_grid(ndim)
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        velocity = ops.resize(torch.randn((1, ndim, *(5,) * ndim), generator=generator), grid.shape, order=3)[0]
        reverse = Velocity(-velocity * voxels / velocity.abs().max(), grid)
        # What is written, and what programs interpolate between its voxels.
        forward = reverse.inverse().on(grid)
        found = invert(forward, grid, tolerance=1e-2, start=reverse)
        missed = forward.follow(found.transform.flow, grid).norm(dim=0, keepdim=True)
        folds = ~found.found & ~found.leaves
        assert float(missed[~folds & ~found.leaves].max()) < 0.05
        assert float(found.leaves.float().mean()) < 0.2
        # Straight between voxels, the strongest fields turn over inside single cells.
        assert not folds.any() or metrics.non_diffeomorphic_volume(forward.flow[None]) > 0
        assert float(folds.float().mean()) < 0.002


def test_voxels_that_come_from_beyond_the_field_are_told_apart() -> None:
    grid = Grid((12, 7), torch.diag(torch.tensor([2.0, 1.5, 1.0])))
    flow = torch.zeros(2, *grid.shape)
    flow[0] = 2.0
    found = invert(Displacement(flow, grid), grid)
    assert found.found.all()
    assert found.leaves[0].all(dim=1).nonzero().flatten().tolist() == [0, 1]
    assert int(found.leaves.sum()) == 2 * 7


def test_what_a_field_that_ends_does_not_reach_comes_from_beyond_it() -> None:
    grid = Grid((12, 7), torch.eye(3))
    flow = torch.full((2, *grid.shape), 0.0)
    flow[0] = 2.0
    found = invert(Displacement(flow, grid, "identity"), grid)  # as ITK has it: nothing is mapped to the first voxels
    assert not found.found[0, 0].any()
    assert bool((found.found | found.leaves).all())
