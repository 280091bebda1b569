import math

import pytest
import torch

from regnet.data.prepare import check_same_grid, majority, prepare, prepare_labels, smooth, smoothing
from regnet.data.spec import InputSpec
from regnet.errors import InputError
from regnet.io.image import Image, read_image
from regnet.spatial.grid import Grid

from .heads import grid_of, head, head_at, labels_of, points, save


def test_the_same_head_is_prepared_the_same_however_it_is_stored(tmp_path):
    # RAS, 1 mm, float32; LAS, 0.8 mm, int16 with slope and intercept; 1 x 1.25 x 2 mm, turned by 7 degrees, int16
    ras = read_image(save(tmp_path / "ras.nii.gz", head(grid_of(1.0))))
    las = read_image(save(tmp_path / "las.nii.gz", head(grid_of(0.8, signs=(-1, 1, 1))), slope=0.05))
    turned = read_image(save(tmp_path / "turned.nii.gz", head(grid_of((1.0, 1.25, 2.0), turn=7.0)), slope=0.05))
    target = grid_of(4.0, half=(36.0, 40.0, 28.0))
    expected = prepare(ras, InputSpec(), target)
    for image, tolerance in ((las, 0.005), (turned, 0.02)):
        difference = (prepare(image, InputSpec(), target).data - expected.data).abs()
        assert difference.max() < tolerance, image.path
        assert difference.mean() < tolerance / 10


@pytest.mark.parametrize("ndim", [2, 3])
def test_prepared_voxels_are_means_of_what_they_cover(ndim):
    # a 1 mm checkerboard: half of every 4 mm voxel is bright; sampling without averaging would alias to 0 or 1
    shape = (48, 56, 40)[:ndim]
    index = torch.meshgrid(*(torch.arange(n) for n in shape), indexing="ij")
    board = (sum(index) % 2).float()[None]
    image = Image(board, Grid(shape, torch.eye(ndim + 1)))
    spec = InputSpec(ndim=ndim, spacing=4.0, margin_mm=None, normalisation="none")
    prepared = prepare(image, spec)
    assert prepared.grid.spacing == (4.0,) * ndim
    assert prepared.data.shape[2:] == tuple(n // 4 for n in shape)
    assert (prepared.data - 0.5).abs().max() < 0.02


def test_means_keep_linear_functions_where_they_are():
    source = grid_of((1.0, 1.25, 2.0), signs=(-1, 1, -1), turn=10.0)
    ramp = points(source) @ torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    spec = InputSpec(normalisation="none", margin_mm=None)
    target = grid_of(4.0, half=(16.0, 16.0, 12.0))  # away from the edges, where means are one-sided
    expected = points(target) @ torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    result = prepare(Image(ramp.float()[None], source), spec, target)
    assert (result.data[0, 0] - expected).abs().max() < 1e-3
    assert (result.view == 1).all()


def test_finer_grids_are_interpolated_linearly_and_not_smoothed():
    source = grid_of(4.0)
    assert smoothing(source, grid_of(1.0, turn=30.0)) == (0.0, 0.0, 0.0)
    image = head(source)
    spec = InputSpec(normalisation="none", margin_mm=None)
    result = prepare(image, spec, source.with_spacing(2.0))
    # centres of the fine voxels lie at a quarter and three quarters between those of the coarse ones
    a, b = image.data[0, 10, 12, 6], image.data[0, 11, 12, 6]
    row = result.data[0, 0]
    near = 0.75 * row[21:23, 24:26, 12:14].mean((1, 2))
    assert near.shape == (2,)
    along = prepare(image, spec, source.with_shape((2 * source.shape[0], *source.shape[1:]))).data[0, 0, :, 12, 6]
    torch.testing.assert_close(
        along[21:23], torch.stack([0.75 * a + 0.25 * b, 0.25 * a + 0.75 * b]), rtol=1e-4, atol=1e-3
    )


def test_a_turned_target_of_the_same_spacing_needs_no_smoothing_and_a_coarser_one_the_box_of_its_voxels():
    source = grid_of(1.0)
    assert max(smoothing(source, grid_of(1.0, turn=33.0))) < 1e-6
    for sigma in smoothing(source, grid_of(4.0, turn=33.0)):
        assert math.isclose(sigma, math.sqrt((16 - 1) / 12), rel_tol=1e-6)
    assert smoothing(grid_of((1.0, 2.0, 4.0)), grid_of(2.0)) == pytest.approx((0.5, 0.0, 0.0))


def test_smoothing_keeps_constants_at_the_edges_too():
    ones = torch.ones(2, 3, 7, 9, 4)
    torch.testing.assert_close(smooth(ones, (1.2, 3.0, 0.3)), ones)


@pytest.mark.parametrize("ndim", [2, 3])
def test_the_grid_is_cut_to_the_foreground_and_a_margin(ndim):
    image = head(grid_of(2.0, half=(60.0, 70.0, 50.0), ndim=ndim))
    whole = prepare(image, InputSpec(ndim=ndim, margin_mm=None))
    for margin in (0.0, 8.0):
        part = prepare(image, InputSpec(ndim=ndim, margin_mm=margin))
        assert part.data.shape[2:] == part.view.shape[2:] == part.grid.shape
        low, high = points(part.grid).reshape(-1, ndim).aminmax(dim=0)
        for axis, (radius, centre) in enumerate(zip((30.0, 36.0, 24.0), (3.0, -4.0, 5.0), strict=False)):
            if axis == ndim:
                break
            assert abs(float(low[axis]) - (centre - radius - margin)) <= 8
            assert abs(float(high[axis]) - (centre + radius + margin)) <= 8
        # the same voxels as without cutting
        start = [round(float(x)) for x in whole.grid.to_voxel(part.grid.affine[:-1, -1])]
        inside = tuple(slice(a, a + n) for a, n in zip(start, part.grid.shape, strict=True))
        assert torch.equal(part.data[0, 0], whole.data[0, 0][inside])


def test_a_moving_image_is_prepared_on_the_fixed_grid_and_knows_where_it_ends():
    fixed = prepare(head(grid_of(2.0)), InputSpec())
    half_view = grid_of(2.0).window((20, 0, 0), (20, 46, 34))
    moving = prepare(head(half_view), InputSpec(background=0.25), fixed.grid)
    assert moving.grid == fixed.grid
    x = points(fixed.grid)[..., 0]
    # voxels 20 to 39 of 40, 2 mm each: from 0 to 40 mm
    assert (moving.view[0, 0][(x > 0.2) & (x < 39.8)].mean()) > 0.9
    assert (moving.view[0, 0][x < -0.2] == 0).all()
    assert (moving.data[0, 0][x < -0.2] == 0.25).all()


def test_native_spacing_is_kept_when_the_spec_has_none():
    prepared = prepare(head(grid_of((2.0, 2.5, 3.0), signs=(-1, 1, 1))), InputSpec(spacing=None, margin_mm=None))
    assert prepared.grid.spacing == pytest.approx((2.0, 2.5, 3.0))
    assert prepared.grid.orientation == "RAS"


def test_labels_become_the_label_that_fills_most_of_a_voxel():
    # rows of three 1 mm voxels: 7 7 0 -> 7, 0 0 9 -> 0, 9 300 300 -> 300; values and type are kept
    row = torch.tensor([7, 7, 0, 0, 0, 9, 9, 300, 300], dtype=torch.int16)
    labels = Image(row[None, :, None].expand(1, 9, 6).contiguous(), Grid((9, 6), torch.eye(3)))
    result = prepare_labels(labels, labels.grid.coarser(3.0))
    assert result.dtype == torch.int16
    assert result[0, 0, :, 0].tolist() == [7, 0, 300]


def test_prepared_labels_fit_the_prepared_image_on_any_storage():
    target = grid_of(4.0, half=(36.0, 40.0, 28.0))
    expected = labels_of(Image(head_at(points(target)).float()[None], target)).data[0]
    for grid in (grid_of(1.0), grid_of(0.8, signs=(-1, 1, 1)), grid_of((1.0, 1.25, 2.0), turn=7.0)):
        result = prepare_labels(labels_of(head(grid)), target)[0, 0]
        assert (result == expected).float().mean() > 0.95


def test_labels_outside_the_view_are_zero():
    labels = Image(torch.full((1, 8, 8), 5, dtype=torch.uint8), Grid((8, 8), torch.eye(3)))
    result = majority(labels, labels.grid, labels.grid.window((-4, 0), (12, 8)))
    assert (result[0, 0, :4] == 0).all() and (result[0, 0, 4:] == 5).all()


@pytest.mark.parametrize("case", ["nan", "constant", "flat", "channels"])
def test_an_image_that_cannot_be_used_is_refused_in_one_line(tmp_path, case):
    image = head(grid_of(4.0))
    if case == "nan":
        image.data[0, 4, 4, 4] = float("nan")
    elif case == "constant":
        image.data[:] = 3
    elif case == "flat":
        image = head(grid_of(4.0, ndim=2))
    image = read_image(save(tmp_path / "subject.nii.gz", image))
    spec = InputSpec(channels=2) if case == "channels" else InputSpec()
    with pytest.raises(InputError, match=r"subject.nii.gz") as error:
        prepare(image, spec)
    assert "\n" not in str(error.value)


def test_labels_that_do_not_fit_their_image_are_refused_by_name():
    image = head(grid_of(4.0))
    other = Image(torch.zeros(1, 3, 4, 5, dtype=torch.uint8), Grid((3, 4, 5), torch.eye(4)))
    with pytest.raises(InputError, match=r"shape 3 x 4 x 5 differs from 20 x 23 x 17 of head.nii"):
        check_same_grid(other, image.grid, "head.nii")
    shifted = labels_of(Image(image.data, image.grid.window((1, 0, 0), image.grid.shape)))
    with pytest.raises(InputError, match=r"its affine differs from that of head.nii"):
        check_same_grid(shifted, image.grid, "head.nii")
    check_same_grid(labels_of(image), image.grid, "head.nii")
