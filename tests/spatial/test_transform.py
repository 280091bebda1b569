import pytest
import torch

from regnet.spatial import Displacement, Grid, compose, in_view

from .test_resample import inside
from .worlds import centres, fixed_grid, moving_grid, ramp, smooth_flow


def shift(grid, millimetres):
    """The transform that moves everything by the same ``millimetres`` (RAS)."""
    vector = torch.linalg.inv(grid.affine[:-1, :-1]) @ torch.tensor(millimetres, dtype=torch.float64)
    flow = vector.float().reshape(-1, *(1,) * grid.ndim).expand(-1, *grid.shape)
    return Displacement(flow.contiguous(), grid)


@pytest.mark.parametrize("ndim", (2, 3))
def test_the_identity_moves_no_point_and_resamples_the_image(ndim):
    grid = fixed_grid(ndim)
    identity = Displacement.identity(grid)
    points = centres(grid)[::5].float()
    assert torch.allclose(identity.map_points(points), points.double(), atol=1e-9)
    assert bool((identity.displacement_mm() == 0).all())


@pytest.mark.parametrize("ndim", (2, 3))
def test_a_shift_moves_every_point_by_it_also_outside_the_grid(ndim):
    vector = (2.5, -1.25, 0.75)[:ndim]
    points = torch.randn(3, 4, ndim) * 50
    moved = shift(fixed_grid(ndim), vector).map_points(points)
    assert moved.shape == points.shape
    assert torch.allclose(moved - points, torch.tensor(vector, dtype=torch.float64).expand(3, 4, ndim), atol=1e-5)


@pytest.mark.parametrize("ndim", (2, 3))
def test_at_a_voxel_the_map_is_the_field(ndim):
    grid = fixed_grid(ndim)
    transform = Displacement(smooth_flow(grid), grid)
    there = transform.map_points(centres(grid))
    expected = centres(grid) + transform.displacement_mm().movedim(0, -1)
    assert torch.allclose(there, expected, atol=1e-4)


@pytest.mark.parametrize("ndim", (2, 3))
def test_applying_takes_the_moving_image_at_the_mapped_place(ndim):
    fixed, moving = fixed_grid(ndim), moving_grid(ndim)
    transform = Displacement(smooth_flow(fixed), fixed)
    there = transform.map_points(centres(fixed))
    moved = transform.apply(ramp(moving), moving)
    slope = torch.tensor([2.0, -3.0, 0.5], dtype=torch.float64)[:ndim]
    at = moving.to_voxel(there)
    seen = ((at >= 0) & (at <= torch.tensor(moving.shape) - 1)).all(dim=-1)
    assert int(seen.sum()) > 0.2 * fixed.voxels
    assert (moved[0, 0] - (100 + there @ slope))[seen].abs().max() < 1e-3
    assert (moved[0, 1] - there[..., 0])[seen].abs().max() < 1e-3
    lost = ((at < -0.6) | (at > torch.tensor(moving.shape) - 0.4)).any(dim=-1)
    assert bool((moved[0, :, lost] == 0).all())


@pytest.mark.parametrize("ndim", (2, 3))
def test_the_same_world_map_on_another_grid(ndim):
    fixed, other = fixed_grid(ndim), moving_grid(ndim).coarser(1.4)
    transform = Displacement(smooth_flow(fixed), fixed)
    again = transform.on(other)
    assert again.grid == other
    assert torch.allclose(again.map_points(centres(other)), transform.map_points(centres(other)), atol=1e-4)
    assert transform.on(fixed) is transform


@pytest.mark.parametrize("ndim", (2, 3))
def test_a_reference_changes_the_grid_and_not_the_place(ndim):
    fixed, moving = fixed_grid(ndim), moving_grid(ndim)
    vector = (1.0, -2.0, 1.5)[:ndim]
    reference = moving.coarser(1.3)
    moved = shift(fixed, vector).apply(ramp(moving), moving, reference, background=-5)
    seen = inside(moving, reference, margin=3)
    slope = torch.tensor([2.0, -3.0, 0.5])[:ndim]
    expected = ramp(reference)[0, 0] + float(slope @ torch.tensor(vector))
    assert moved.shape[2:] == reference.shape
    assert (moved[0, 0] - expected)[seen].abs().max() < 1e-3


@pytest.mark.parametrize("mode", ("nearest", "linear"))
def test_labels_move_as_the_image_does(mode):
    fixed, moving = fixed_grid(3), moving_grid(3)
    vector = (4.0, 0.0, 0.0)
    labels = torch.where(centres(moving)[..., 0] > 5.0, 40, 3).to(torch.uint8)[None, None]
    moved = shift(fixed, vector).apply_labels(labels, moving, mode=mode)
    assert moved.dtype == torch.uint8
    x = centres(fixed)[..., 0]
    sure = inside(moving, fixed, margin=4) & ((x - 1.0).abs() > 1.5)
    assert torch.equal(moved[0, 0][sure], torch.where(x > 1.0, 40, 3).to(torch.uint8)[sure])


@pytest.mark.parametrize("ndim", (2, 3))
def test_the_inverse_brings_a_point_back(ndim):
    grid = fixed_grid(ndim)
    transform = Displacement(smooth_flow(grid, 2.0), grid)
    points = centres(grid)[(slice(5, -5),) * ndim]
    back = transform.inverse().map_points(transform.map_points(points))
    assert (transform.map_points(points) - points).abs().max() > 1.0
    assert (back - points).abs().max() < 0.1


def test_a_transform_can_be_differentiated_in_its_field():
    fixed, moving = fixed_grid(2), moving_grid(2)
    flow = smooth_flow(fixed).requires_grad_()
    moved = Displacement(flow, fixed).apply(ramp(moving), moving, moving.coarser(1.5))
    moved.square().sum().backward()
    assert bool(torch.isfinite(flow.grad).all()) and float(flow.grad.abs().max()) > 0


def test_a_field_that_is_not_on_its_grid_is_refused():
    grid = fixed_grid(3)
    with pytest.raises(ValueError, match="shape"):
        Displacement(torch.zeros(3, 4, 5, 6), grid)
    with pytest.raises(ValueError, match="no common space"):
        Displacement.identity(grid).apply(torch.zeros(1, 1, 4, 5), Grid((4, 5), torch.eye(3)))


def test_view_and_background_agree():
    fixed, moving = fixed_grid(3), moving_grid(3)
    moved = Displacement.identity(fixed).apply(torch.ones(1, 1, *moving.shape), moving)
    assert torch.equal(moved, in_view(moving, fixed))


@pytest.mark.parametrize("ndim", (2, 3))
def test_a_point_goes_through_the_first_of_composed_maps_first(ndim):
    fixed, middle = fixed_grid(ndim), moving_grid(ndim)
    first, then = Displacement(smooth_flow(fixed), fixed), Displacement(smooth_flow(middle), middle)
    composed = compose([first, then], fixed)
    assert composed.grid == fixed
    expected = then.map_points(first.map_points(centres(fixed)))
    assert torch.allclose(composed.map_points(centres(fixed)), expected, atol=1e-4)
    assert compose([], fixed).flow.abs().max() < 1e-5
    assert compose([first], fixed) is first


def test_a_transform_of_another_dimension_does_not_compose():
    flat, deep = Displacement.identity(fixed_grid(2)), Displacement.identity(fixed_grid(3))
    with pytest.raises(ValueError, match="a 2-D transform does not act on a 3-D grid"):
        compose([deep, flat], deep.grid)
