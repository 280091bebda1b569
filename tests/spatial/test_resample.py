import pytest
import torch

from regnet.spatial import in_view, resample, resample_labels

from .worlds import centres, fixed_grid, moving_grid, ramp


def inside(source, target, margin=0.0):
    """Voxels of ``target`` whose centre lies between the outer centres of ``source``, less a margin in voxels."""
    at = source.to_voxel(centres(target))
    return ((at >= margin) & (at <= torch.tensor(source.shape) - 1 - margin)).all(dim=-1)


@pytest.mark.parametrize("order", (1, 3))
@pytest.mark.parametrize("ndim", (2, 3))
def test_a_function_of_the_world_stays_where_it_is(ndim, order):
    source, target = moving_grid(ndim), fixed_grid(ndim)
    # A cubic spline bends a ramp near the ends of the grid, where it is mirrored.
    seen = inside(source, target, margin=0 if order == 1 else 6)
    result = resample(ramp(source), source, target, order=order)
    assert int(seen.sum()) > 20
    assert (result - ramp(target))[0, :, seen].abs().max() < (1e-3 if order == 1 else 2e-2)


@pytest.mark.parametrize("ndim", (2, 3))
@pytest.mark.parametrize("background", (0.0, -1024.0))
def test_out_of_view_comes_the_background_and_never_a_mirrored_image(ndim, background):
    source, target = moving_grid(ndim), fixed_grid(ndim)
    image = torch.rand(2, 3, *source.shape) + 5
    result = resample(image, source, target, background=background)
    seen = in_view(source, target)[0, 0].bool()
    assert bool((result[..., ~seen] == background).all())
    assert bool((result[..., seen] >= 4.999).all())
    assert 0 < int(seen.sum()) < target.voxels


@pytest.mark.parametrize("ndim", (2, 3))
def test_a_voxel_is_in_view_up_to_its_outer_edge(ndim):
    source = fixed_grid(ndim)
    wide = source.window((-2,) * ndim, tuple(n + 4 for n in source.shape))
    mask = in_view(source, wide)
    assert mask.shape == (1, 1, *wide.shape)
    expected = torch.zeros(wide.shape)
    expected[(slice(2, -2),) * ndim] = 1
    assert torch.equal(mask[0, 0], expected)
    half = source.with_shape(tuple(2 * n for n in source.shape))
    assert bool((in_view(source, half) == 1).all())


@pytest.mark.parametrize("mode", ("nearest", "linear"))
@pytest.mark.parametrize("ndim", (2, 3))
def test_labels_keep_their_type_their_values_and_their_place(ndim, mode):
    source, target = moving_grid(ndim), fixed_grid(ndim)
    labels = torch.where(centres(source)[..., 0] > 1.0, 2035, 7).to(torch.int16)[None, None]
    result = resample_labels(labels, source, target, mode=mode)
    assert result.dtype == torch.int16
    seen = inside(source, target)
    away = (centres(target)[..., 0] - 1.0).abs() > 1.5
    truth = torch.where(centres(target)[..., 0] > 1.0, 2035, 7)
    assert torch.equal(result[0, 0][seen & away].long(), truth[seen & away])
    assert set(result.unique().tolist()) == {0, 7, 2035}
    assert bool((result[0, 0][~in_view(source, target)[0, 0].bool()] == 0).all())


def test_a_whole_number_image_is_sampled_as_float():
    grid = fixed_grid(2)
    image = torch.arange(grid.voxels).reshape(1, 1, *grid.shape)
    result = resample(image, grid, grid)
    assert result.dtype == torch.float32
    assert torch.allclose(result, image.float(), atol=1e-3)


def test_an_image_that_is_not_on_its_grid_is_refused():
    grid = fixed_grid(3)
    with pytest.raises(ValueError, match="shape"):
        resample(torch.zeros(1, 1, 4, 5, 6), grid, grid)
    with pytest.raises(ValueError, match="shape"):
        resample_labels(torch.zeros(*grid.shape, dtype=torch.uint8), grid, grid)


@pytest.mark.parametrize("background", (1e30, float("nan"), float("-inf")))
@pytest.mark.parametrize("order", (1, 3))
def test_the_background_costs_the_image_no_digit(order, background):
    source, target = moving_grid(3), fixed_grid(3)
    image = torch.rand(1, 2, *source.shape)
    seen = in_view(source, target)[0, 0].bool()
    plain = resample(image, source, target, order=order)
    result = resample(image, source, target, order=order, background=background)
    assert torch.equal(result[..., seen], plain[..., seen])
    assert torch.equal(result[..., ~seen].nan_to_num(7), torch.full_like(plain[..., ~seen], background).nan_to_num(7))
