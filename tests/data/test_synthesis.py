import pytest
import torch

from regnet import ops
from regnet.data.prepare import prepare
from regnet.data.spec import InputSpec
from regnet.data.synthesis import Recipe, generator_of, make_sources, random_deformations, synthetic_pair
from regnet.spatial.grid import Grid

from .heads import grid_of, head, labels_of

QUIET = Recipe(gamma=0, contrast=0, bias=0, noise=0)
STILL = Recipe(
    displacement_mm=(0, 0), anatomy_mm=(0, 0), rotation_deg=0, scaling=0, shift_mm=0, flip=False, gamma=0, contrast=0,
    bias=0, noise=0,
)  # fmt: skip


def images_of(ndim):
    return [head(grid_of(2.0, ndim=ndim)), head(grid_of((2.5, 2.0, 1.5), signs=(-1, 1, 1), turn=20.0, ndim=ndim))]


def sources(ndim, **spec):
    spec = InputSpec(ndim=ndim, margin_mm=12.0, **spec)
    images = images_of(ndim)
    return make_sources(images, [labels_of(images[0]), None], spec), spec


@pytest.mark.parametrize("ndim", [2, 3])
def test_the_flow_takes_moving_to_fixed(ndim):
    (source, _), spec = sources(ndim)
    for index in range(4):
        pair = synthetic_pair(source, spec, QUIET, generator_of(1, index))
        flow = pair["flow"][None]
        moved = ops.warp(pair["moving"][None], flow, bound="replicate", extrapolate="edge")[0]
        before = (pair["moving"] - pair["fixed"]).abs().mean()
        after = (moved - pair["fixed"]).abs().mean()
        assert after < 0.012  # one linear interpolation against two, at 4 mm
        assert after < 0.5 * before or before < 0.012
        labels = ops.warp_labels(pair["moving_labels"][None], flow, mode="nearest")[0]
        assert (labels == pair["fixed_labels"]).float().mean() > 0.9


@pytest.mark.parametrize("ndim", [2, 3])
def test_with_nothing_to_change_both_images_are_the_prepared_source(ndim):
    made, spec = sources(ndim)
    for source, image in zip(made, images_of(ndim), strict=True):
        pair = synthetic_pair(source, spec, STILL, generator_of(0))
        assert torch.equal(pair["moving"], pair["fixed"])
        assert (pair["flow"] == 0).all()
        assert torch.equal(pair["spacing"], torch.full((ndim,), 4.0))
        affine = torch.eye(ndim + 1, dtype=torch.float64)
        affine[:-1] = (image.grid.affine[:-1, :-1] @ source.matrix[0]) + torch.nn.functional.pad(
            image.grid.affine[:-1, -1:], (ndim, 0)
        )
        prepared = prepare(image, spec, Grid(source.shape, affine))
        torch.testing.assert_close(pair["moving"][None], prepared.data, atol=1e-4, rtol=0)
        assert torch.equal(pair["view"][None], prepared.view)
    assert made[0].shape == made[1].shape
    assert "moving_labels" not in pair
    labels = synthetic_pair(made[0], spec, STILL, generator_of(0))["moving_labels"]
    assert labels.dtype == torch.uint8 and labels.unique().tolist() == [0, 1, 2]


def test_a_pair_is_a_function_of_its_key_alone():
    (source, _), spec = sources(3)
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first = synthetic_pair(source, spec, Recipe(), generator_of(7, 0, 3, 2))
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(6)
    again = synthetic_pair(source, spec, Recipe(), generator_of(7, 0, 3, 2))
    for name, value in first.items():
        assert torch.equal(value, again[name]), name
    for other in ((8, 0, 3, 2), (7, 1, 3, 2), (7, 0, 2, 3), (7, 0, 3, 1)):
        pair = synthetic_pair(source, spec, Recipe(), generator_of(*other))
        assert not torch.equal(pair["moving"], first["moving"])
        assert not torch.equal(pair["flow"], first["flow"])


@pytest.mark.parametrize("shape", [(40, 33), (28, 33, 24)])
def test_the_strongest_default_deformation_does_not_fold_and_has_its_deviation(shape):
    top = Recipe().displacement_mm[1]
    deviations = []
    for index in range(5):
        flow = random_deformations(shape, 4.0, Recipe().scales_mm, [(top, top)] * 2, generator_of(index))
        assert ops.jacobian_determinant(flow).min() > 0
        deviations.append(4.0 * flow.square().mean().sqrt())
    # few control points of 64 mm fit into the grid, so one draw may be far from the mean
    assert 0.7 * top < torch.stack(deviations).mean() < 1.3 * top


def test_intensities_change_independently_and_the_background_does_not():
    (source, _), spec = sources(3)
    still = synthetic_pair(source, spec, STILL, generator_of(0))["moving"]
    recipe = Recipe(displacement_mm=(0, 0), anatomy_mm=(0, 0), rotation_deg=0, scaling=0, shift_mm=0, flip=False)
    pair = synthetic_pair(source, spec, recipe, generator_of(0))
    for name in ("moving", "fixed"):
        assert (pair[name][still == 0] == 0).all()
        assert pair[name].min() == 0 and pair[name].max() <= 1
        assert (pair[name] - still).abs().mean() > 1e-3
    assert (pair["moving"] - pair["fixed"]).abs().mean() > 1e-3


def test_the_grid_is_centred_on_the_foreground_with_the_margin():
    (source, turned), spec = sources(3)
    assert source.shape == turned.shape
    foreground = synthetic_pair(source, spec, STILL, generator_of(0))["moving"][0] > 0.05
    for axis in range(3):
        others = [other for other in range(3) if other != axis]
        hit = foreground.amax(others).nonzero().flatten()
        before, after = int(hit[0]), foreground.shape[axis] - 1 - int(hit[-1])
        assert abs(before - after) <= 1
        assert min(before, after) >= 2  # 12 mm are 3 voxels


def test_the_view_ends_where_the_source_does():
    image = head(grid_of(2.0).window((20, 0, 0), (20, 46, 34)))  # the right half of the head
    spec = InputSpec(margin_mm=24.0)
    (source,) = make_sources([image], [None], spec)
    view = synthetic_pair(source, spec, STILL, generator_of(0))["view"]
    assert set(torch.unique(view).tolist()) == {0.0, 1.0}
    assert 0.1 < view.mean() < 0.5


def test_zscore_pairs_have_mean_zero_and_deviation_one_in_the_foreground():
    (source, _), spec = sources(3, normalisation="zscore", background=-5.0)
    image = synthetic_pair(source, spec, Recipe(), generator_of(2))["moving"]
    inside = image > -4
    assert abs(float(image[inside].mean())) < 1e-3
    assert abs(float(image[inside].std()) - 1) < 1e-2
    assert (image[~inside] == -5).all()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"spacing": None}, "need a spacing"),
        ({"normalisation": "none"}, "'percentile' or 'zscore', got 1 and 'none'"),
        ({"channels": 2}, "one channel"),
    ],
)
def test_a_spec_that_pairs_cannot_be_made_for_is_refused(spec, message):
    image = head(grid_of(4.0))
    with pytest.raises(ValueError, match=message):
        make_sources([image], [None], InputSpec(**spec))
