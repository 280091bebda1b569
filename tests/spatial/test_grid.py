import itertools

import pytest
import torch

from regnet.spatial import Grid, canonical, matrix

from .worlds import fixed_grid, moving_grid, oblique


def diagonal(shape, *steps, origin=None):
    affine = torch.diag(torch.tensor([*steps, 1.0], dtype=torch.float64))
    if origin is not None:
        affine[:-1, -1] = torch.tensor(origin, dtype=torch.float64)
    return Grid(shape, affine)


def edges(grid):
    outer = torch.tensor(list(itertools.product(*((-0.5, n - 0.5) for n in grid.shape))))
    return grid.to_world(outer)


@pytest.mark.parametrize("signs", list(itertools.product((1, -1), repeat=3)))
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_orientation_names_where_each_array_axis_points(order, signs):
    affine = torch.eye(4, dtype=torch.float64)
    affine[:3, :3] = 0
    for axis, world in enumerate(order):
        affine[world, axis] = signs[axis] * (axis + 1)
    names = "".join(("RAS" if signs[axis] > 0 else "LPI")[world] for axis, world in enumerate(order))
    grid = Grid((4, 5, 6), affine)
    assert grid.orientation == names
    assert grid.world_axes == order
    assert grid.spacing == (1, 2, 3)


def test_an_oblique_grid_has_the_nearest_orientation_and_its_own_spacing():
    assert fixed_grid(3).orientation == "LAS"
    assert fixed_grid(2).orientation == "LA"
    assert fixed_grid(3).spacing == pytest.approx((1.5, 1.0, 2.25))
    assert fixed_grid(3).voxels == 24 * 30 * 17


@pytest.mark.parametrize("ndim", (2, 3))
def test_voxels_and_world_are_inverse_maps(ndim):
    points = torch.rand(7, 2, ndim) * 20
    grid = fixed_grid(ndim)
    assert torch.allclose(grid.to_voxel(grid.to_world(points)), points.double(), atol=1e-10)
    first = grid.to_world(torch.zeros(ndim))
    assert torch.allclose(first, grid.affine[:-1, -1])


@pytest.mark.parametrize("ndim", (2, 3))
def test_the_matrix_between_two_grids_goes_through_the_world(ndim):
    source, target = fixed_grid(ndim), moving_grid(ndim)
    points = torch.rand(5, ndim, dtype=torch.float64) * 20
    across = matrix(source, target)
    assert across.shape == (1, ndim, ndim + 1)
    there = points @ across[0, :, :-1].T + across[0, :, -1]
    assert torch.allclose(target.to_world(there), source.to_world(points), atol=1e-10)


def test_a_2d_and_a_3d_grid_have_no_matrix():
    with pytest.raises(ValueError, match="no common space"):
        matrix(fixed_grid(2), fixed_grid(3))


@pytest.mark.parametrize(
    ("count", "old", "new", "expected", "origin"), [(32, 1.0, 0.2, 160, -0.4), (25, 0.1, 0.01, 250, -0.045)]
)
def test_respacing_aligns_the_edges(count, old, new, expected, origin):
    grid = diagonal((count, 4), old, 1.0).with_spacing((new, 1.0))
    assert grid.shape == (expected, 4)
    assert float(grid.affine[0, 2]) == pytest.approx(origin, abs=1e-12)
    assert grid.spacing == pytest.approx((new, 1.0))


@pytest.mark.parametrize("factor", (2, 3.3, (1, 2, 5)))
def test_a_coarser_grid_has_the_same_field_of_view(factor):
    grid = fixed_grid(3)
    coarse = grid.coarser(factor)
    assert torch.allclose(edges(coarse), edges(grid), atol=1e-10)
    factors = factor if isinstance(factor, tuple) else (factor,) * 3
    assert coarse.shape == tuple(round(n / f) for n, f in zip(grid.shape, factors, strict=True))


def test_a_window_keeps_the_places_of_its_voxels_also_beyond_the_grid():
    grid = fixed_grid(3)
    part = grid.window((2, -3, 5), (4, 40, 6))
    assert part.shape == (4, 40, 6)
    point = torch.tensor([1.0, 2.0, 3.0])
    assert torch.allclose(part.to_world(point), grid.to_world(point + torch.tensor([2.0, -3.0, 5.0])))


def test_canonical_only_flips_and_permutes_a_grid_along_the_world_axes():
    affine = torch.tensor([[0, 0, -2.0, 40], [-1, 0, 0, 30], [0, 3, 0, -20], [0, 0, 0, 1]], dtype=torch.float64)
    grid = canonical(Grid((10, 11, 12), affine))
    assert grid.orientation == "RAS"
    assert grid.shape == (12, 10, 11)
    assert grid.spacing == (2, 1, 3)
    assert torch.allclose(grid.affine[:-1, -1], torch.tensor([40 - 2 * 11.0, 30 - 9.0, -20.0], dtype=torch.float64))


@pytest.mark.parametrize("ndim", (2, 3))
@pytest.mark.parametrize("spacing", (None, 2.5, (1.0, 2.0, 3.0)))
def test_canonical_covers_the_whole_field_of_view(ndim, spacing):
    grid = fixed_grid(ndim)
    wanted = spacing[:ndim] if isinstance(spacing, tuple) else spacing
    cover = canonical(grid, wanted)
    assert cover.orientation == "RAS"[:ndim]
    expected = {None: (1.5, 1.0, 2.25), 2.5: (2.5,) * 3}.get(spacing, spacing)[:ndim]
    assert cover.spacing == pytest.approx(expected)
    inside = cover.to_voxel(edges(grid))
    shape = torch.tensor(cover.shape, dtype=torch.float64)
    assert bool((inside >= -0.5 - 1e-3).all()) and bool((inside <= shape - 0.5 + 1e-3).all())
    # Centred, and no layer of voxels is for nothing.
    assert torch.allclose(inside.min(0).values + inside.max(0).values, shape - 1.0, atol=1e-9)
    assert bool((inside.max(0).values - inside.min(0).values > shape - 1.0).all())


def test_a_grid_of_one_layer_is_a_grid():
    grid = canonical(oblique((9, 1, 8), (1, 4, 1), 0.0, (0, 0, 0)))
    assert grid.shape == (9, 1, 8)


def test_equal_grids_are_equal_and_hash_alike():
    assert fixed_grid(3) == fixed_grid(3)
    assert len({fixed_grid(3), fixed_grid(3), moving_grid(3)}) == 2
    assert fixed_grid(3) != moving_grid(3)
    assert fixed_grid(3) != "grid"


def test_grids_match_up_to_the_rounding_of_a_header():
    grid = fixed_grid(3)
    rounded = Grid(grid.shape, grid.affine.float())
    assert grid != rounded
    assert grid.matches(rounded)
    assert not grid.matches(grid.window((0, 0, 1), grid.shape))
    assert not grid.matches(moving_grid(3))


@pytest.mark.parametrize(
    ("shape", "affine", "message"),
    [
        ((4,), torch.eye(2), "2 or 3 axes"),
        ((4, 0, 3), torch.eye(4), "at least one voxel"),
        ((4, 5), torch.eye(4), "affine of 3 x 3"),
        ((4, 5), torch.full((3, 3), torch.nan), "finite"),
        ((4, 5), torch.ones(3, 3), "last row"),
        ((4, 5, 6), torch.diag(torch.tensor([1.0, 1, 0, 1])), "invertible"),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused(shape, affine, message):
    with pytest.raises(ValueError, match=message):
        Grid(shape, affine)


@pytest.mark.parametrize("spacing", (0, -1.0, (1, 2), float("nan")))
def test_a_spacing_that_makes_no_sense_is_refused(spacing):
    with pytest.raises(ValueError, match="spacing must be"):
        canonical(fixed_grid(3), spacing)


@pytest.mark.parametrize("ndim", (2, 3))
def test_grids_overlap_where_their_fields_of_view_meet(ndim):
    grid = Grid((5, 6, 7)[:ndim], torch.eye(ndim + 1))
    for start, expected in ((0, True), (4, True), (5.5, False), (-5.5, False), (1e7, False)):
        other = grid.window([start, *[0] * (ndim - 1)], grid.shape)
        assert grid.overlaps(other) == other.overlaps(grid) == expected
    within = diagonal((1,) * ndim, *[1e-3] * ndim)
    assert grid.overlaps(within) and within.overlaps(grid)
