"""Laws that every map of the world keeps, alone and chained."""

import pytest
import torch

from regnet import ops
from regnet.spatial import FFD, Affine, Composite, Displacement, Transform, Velocity, chain, compose, resample

from .worlds import centres, fixed_grid, moving_grid, ramp, rotation, smooth_flow

KINDS = ("affine", "displacement", "identity outside", "velocity", "ffd", "composite")


def turn(ndim: int, degrees: float = 8.0) -> Affine:
    """A turn with a stretch, a shear and a shift: no rounded numbers."""
    matrix = torch.eye(ndim + 1, dtype=torch.float64)
    stretch = torch.diag(torch.tensor([1.1, 0.93, 1.04], dtype=torch.float64)[:ndim])
    stretch[0, 1] = 0.07
    matrix[:-1, :-1] = rotation(ndim, degrees) @ stretch
    matrix[:-1, -1] = torch.tensor([1.7, -2.3, 0.9], dtype=torch.float64)[:ndim]
    return Affine(matrix)


def make(kind: str, ndim: int) -> Transform:
    grid = fixed_grid(ndim)
    if kind == "affine":
        return turn(ndim)
    if kind == "displacement":
        return Displacement(smooth_flow(grid), grid)
    if kind == "identity outside":
        return Displacement(smooth_flow(grid), grid, outside="identity")
    if kind == "velocity":
        return Velocity(smooth_flow(grid, 2.0), grid)
    if kind == "ffd":
        points = tuple(int((n - 1) // s) + 4 for n, s in zip(grid.shape, (5.0, 6.5, 4.0), strict=False))
        control = torch.randn(ndim, *points, generator=torch.Generator().manual_seed(3))
        return FFD(control, grid, (5.0, 6.5, 4.0)[:ndim])
    return Composite((make("displacement", ndim), turn(ndim, -5), make("ffd", ndim)))


@pytest.mark.parametrize("ndim", (2, 3))
@pytest.mark.parametrize("kind", KINDS)
def test_sampled_on_a_grid_it_is_the_same_map_there(kind: str, ndim: int) -> None:
    transform, other = make(kind, ndim), moving_grid(ndim).coarser(1.3)
    sampled = transform.on(other)
    assert isinstance(sampled, Displacement) and sampled.grid == other
    there = transform.map_points(centres(other))
    assert there.dtype == torch.float64 and transform.ndim == ndim
    assert torch.allclose(sampled.map_points(centres(other)), there, atol=1e-4)


@pytest.mark.parametrize("ndim", (2, 3))
@pytest.mark.parametrize("kind", KINDS)
def test_applying_takes_the_image_at_the_mapped_points(kind: str, ndim: int) -> None:
    transform, source, reference = make(kind, ndim), moving_grid(ndim), fixed_grid(ndim).coarser(1.2)
    there = transform.map_points(centres(reference))
    moved = transform.apply(ramp(source), source, reference, background=-7.0)
    at = source.to_voxel(there)
    seen = ((at >= 0) & (at <= torch.tensor(source.shape) - 1)).all(dim=-1)
    slope = torch.tensor([2.0, -3.0, 0.5], dtype=torch.float64)[:ndim]
    assert int(seen.sum()) > 0.1 * reference.voxels
    assert (moved[0, 0] - (100 + there @ slope))[seen].abs().max() < 1e-3


@pytest.mark.parametrize("ndim", (2, 3))
@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("then", KINDS)
def test_the_right_factor_comes_first(then: str, first: str, ndim: int) -> None:
    a, b = make(then, ndim), make(first, ndim)
    points = centres(fixed_grid(ndim))[(slice(None, None, 3),) * ndim]
    both = a @ b
    assert torch.allclose(both.map_points(points), a.map_points(b.map_points(points)), atol=1e-9)
    # At the border of a field that is the identity outside, the map jumps.
    other = moving_grid(ndim).coarser(2)
    wrong = (both.on(other).map_points(centres(other)) - both.map_points(centres(other))).abs().amax(-1) > 1e-3
    assert float(wrong.float().mean()) < (0.01 if "identity outside" in (then, first) else 1e-9)


@pytest.mark.parametrize("ndim", (2, 3))
@pytest.mark.parametrize("kind", KINDS)
def test_the_inverse_goes_back(kind: str, ndim: int) -> None:
    transform, grid = make(kind, ndim), fixed_grid(ndim)
    points = centres(grid)[(slice(6, -6),) * ndim]
    back = transform.map_points(transform.inverse().map_points(points))
    assert (transform.map_points(points) - points).abs().max() > 1
    # A field that was inverted is exact at its voxels; of a spline the inverse is that of its voxels joined by lines.
    limit = {"affine": 1e-9, "velocity": 0.05, "ffd": 0.1, "composite": 0.3}.get(kind, 2e-3)
    assert float((grid.to_voxel(back) - grid.to_voxel(points)).abs().max()) < limit


@pytest.mark.parametrize("ndim", (2, 3))
def test_affine_maps_multiply_and_take_no_field(ndim: int) -> None:
    a, b, grid = turn(ndim), turn(ndim, -20), fixed_grid(ndim)
    assert isinstance(a @ b, Affine)
    assert torch.allclose((a @ b).matrix, a.matrix @ b.matrix)
    assert torch.allclose((a.inverse() @ a).matrix, torch.eye(ndim + 1, dtype=torch.float64), atol=1e-12)
    field = make("displacement", ndim)
    long = chain([a, b, field, a @ field, b, b])
    assert [type(part).__name__ for part in long.parts] == ["Affine", "Displacement", "Displacement", "Affine"]
    assert long.home is None and (a @ field).home == grid
    # Turned about by 8 degrees and back, the image is as it was to the last digits: it was interpolated at its voxels.
    image = ramp(grid)
    assert torch.allclose((a.inverse() @ a).apply(image, grid, grid), image, atol=1e-4)
    assert torch.equal(
        Affine.identity(ndim).apply(image, moving_grid(ndim).with_shape(grid.shape), grid),
        resample(image, moving_grid(ndim).with_shape(grid.shape), grid),
    )


@pytest.mark.parametrize("ndim", (2, 3))
def test_a_field_may_end_at_its_border(ndim: int) -> None:
    grid = fixed_grid(ndim)
    flow = torch.ones(ndim, *grid.shape)
    outer = torch.tensor([n - 1.0 for n in grid.shape], dtype=torch.float64)
    inside, outside = grid.to_world(outer + 0.49), grid.to_world(outer + 0.6)
    ends, goes_on = Displacement(flow, grid, "identity"), Displacement(flow, grid)
    assert torch.allclose(goes_on.map_points(inside), ends.map_points(inside))
    assert torch.allclose(ends.map_points(outside), outside)
    assert torch.allclose(grid.to_voxel(goes_on.map_points(outside)), outer + 1.6)
    wide = grid.window((-3,) * ndim, tuple(n + 6 for n in grid.shape))
    on = ends.on(wide).flow
    assert float(on[(slice(None), *(slice(3, -3),) * ndim)].min()) > 0.999
    assert float(on.sum()) == pytest.approx(ndim * grid.voxels, rel=1e-4)


@pytest.mark.parametrize("ndim", (2, 3))
def test_a_free_form_deformation_is_the_spline_of_the_operators(ndim: int) -> None:
    transform = make("ffd", ndim)
    dense = ops.ffd(transform.control[None], transform.grid.shape, transform.spacing)[0]
    assert torch.equal(transform.on(transform.grid).flow, dense)
    through_the_lattice = Composite((transform,)).on(transform.grid).flow
    assert torch.allclose(through_the_lattice, dense, atol=1e-4)
    far = transform.grid.to_world(torch.full((1, ndim), 500.0))
    assert float((transform.map_points(far) - transform.map_points(far + 0.01) + 0.01).abs().max()) < 1e-3


def test_what_makes_no_sense_is_refused() -> None:
    grid = fixed_grid(3)
    for matrix, message in (
        (torch.eye(5), "3 x 3 or 4 x 4"),
        (torch.full((4, 4), torch.nan), "finite"),
        (torch.ones(4, 4), "last row"),
        (torch.diag(torch.tensor([1.0, 1, 0, 1])), "inverse"),
    ):
        with pytest.raises(ValueError, match=message):
            Affine(matrix)
    with pytest.raises(ValueError, match="control points are needed"):
        FFD(torch.zeros(3, 4, 4, 4), grid, 4.0)
    with pytest.raises(ValueError, match="channels"):
        FFD(torch.zeros(2, 4, 4, 4), grid, 40.0)
    with pytest.raises(ValueError, match="steps"):
        Velocity(torch.zeros(3, *grid.shape), grid, -1)
    with pytest.raises(ValueError, match="outside must be"):
        Displacement(torch.zeros(3, *grid.shape), grid, "zero")
    with pytest.raises(ValueError, match="at least one"):
        chain([])
    with pytest.raises(ValueError, match="2-D and 3-D"):
        turn(2) @ turn(3)
    with pytest.raises(ValueError, match="give a reference"):
        turn(3).apply(torch.zeros(1, 1, *grid.shape), grid)
    with pytest.raises(ValueError, match="no common space"):
        compose([turn(2)], grid)
    with pytest.raises(AttributeError):
        turn(3).matrix = torch.eye(4)  # type: ignore[misc]
