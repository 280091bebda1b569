import pytest
import torch

from regnet import ops
from regnet.data.datamodule import SynthesisData
from regnet.data.label_pairs import LabelPairs, LabelRecipe, pair_of_labels
from regnet.data.painting import Look, paint, thick
from regnet.data.shapes import random_body, random_shapes, surround
from regnet.data.synthesis import generator_of
from regnet.errors import InputError

SHAPES = [(25, 30), (14, 20, 17)]
PLAIN = Look(texture=0, blur=0, bias=0, thickness=1, noise=0, gamma=0, crop=0)
STILL = {"displacement_mm": (0, 0), "anatomy_mm": (0, 0), "rotation_deg": 0, "scaling": 0, "shift_mm": 0}


def equal(one, other):
    return all(torch.equal(one[name], other[name]) for name in one if torch.is_tensor(one[name]))


def body(shape):
    labels = random_shapes(shape, 4, 6.0, generator_of(3)) + 1
    return labels * random_body(shape, generator_of(4))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_pair_is_a_function_of_seed_epoch_and_index_alone(shape):
    first = LabelPairs([body(shape)], shape, 4.0, 3, seed=1)
    state = torch.get_rng_state()
    pair = first[(2, 1)]
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(9)
    assert equal(pair, LabelPairs([body(shape)], shape, 4.0, 5, seed=1)[(2, 1)])
    for seed, key in ((1, (1, 1)), (1, (2, 2)), (2, (2, 1))):
        assert not equal(pair, LabelPairs([body(shape)], shape, 4.0, 3, seed=seed)[key])
    validation = LabelPairs([body(shape)], shape, 4.0, 3, seed=1, training=False)
    assert equal(validation[(0, 1)], validation[(7, 1)]) and not equal(validation[1], first[(0, 1)])


@pytest.mark.parametrize("shape", SHAPES)
def test_the_flow_takes_the_moving_labels_to_the_fixed_ones(shape):
    recipe = LabelRecipe(displacement_mm=(2, 2))
    pair = LabelPairs([], shape, 4.0, 1, recipe)[0]
    assert pair["moving"].shape == pair["fixed"].shape == pair["view"].shape == (1, *shape)
    assert pair["moving_labels"].dtype == pair["fixed_labels"].dtype == torch.uint8
    moved = ops.warp_labels(pair["moving_labels"][None], pair["flow"][None], mode="nearest")[0]
    same = [(each == pair["fixed_labels"]).float().mean() for each in (moved, pair["moving_labels"])]
    assert same[0] > same[1] and same[0] > 0.8
    assert ops.jacobian_determinant(pair["flow"][None]).min() > 0


@pytest.mark.parametrize("shape", SHAPES)
def test_with_nothing_bent_both_label_maps_are_the_one_given(shape):
    labels = body(shape)
    pair = pair_of_labels(labels, labels, 4.0, LabelRecipe(**STILL), generator_of(0))
    assert torch.equal(pair["moving_labels"], labels[0]) and torch.equal(pair["fixed_labels"], labels[0])
    assert not pair["flow"].any()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_pair_across_two_maps_has_the_labels_of_both_and_no_known_flow(shape):
    one, other = body(shape), random_shapes(shape, 3, 6.0, generator_of(5))
    pair = pair_of_labels(one, other, 4.0, LabelRecipe(**STILL), generator_of(0))
    assert torch.equal(pair["moving_labels"], one[0]) and torch.equal(pair["fixed_labels"], other[0])
    assert pair["flow"].isnan().all()
    pairs = LabelPairs([one, other, one.flip(2)], shape, 4.0, 12, shapes_share=0, across=0.5)
    across = [sample for sample in map(pairs.__getitem__, range(12)) if "to" in sample["id"]]
    assert 2 <= len(across) <= 10
    for sample in across:
        first, second = sample["id"].split("-")[0].removeprefix("map").split("to")
        assert first != second and sample["flow"].isnan().all()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_plain_look_is_one_grey_value_a_label_and_black_where_stripped(shape):
    labels = body(shape)
    image, view = paint(labels, 5, 4.0, PLAIN, True, generator_of(0))
    assert view.all() and not image[labels == 0].any()
    assert all(len(image[labels == label].unique()) == 1 for label in range(5))
    other, _ = paint(labels, 5, 4.0, PLAIN, True, generator_of(1))
    assert not torch.equal(image, other)


def test_noise_texture_and_bias_change_no_black_background_and_stay_in_range():
    labels = body(SHAPES[1])
    image, _ = paint(labels, 5, 4.0, Look(texture=0.5, noise=0.5, bias=1.0), True, generator_of(2))
    assert not image[labels == 0].any() and image.min() >= 0 and image.max() <= 1
    full, _ = paint(labels, 5, 4.0, Look(noise=0.5), False, generator_of(2))
    assert full[labels == 0].any()


def test_cropping_takes_a_slab_of_at_most_its_share_out_of_half_the_images():
    labels = torch.ones(1, 1, 20, 20, dtype=torch.uint8)
    cut = 0
    for index in range(40):
        image, view = paint(labels, 2, 4.0, Look(crop=0.5), False, generator_of(index))
        assert not image[view == 0].any()
        assert view.mean() >= 0.5
        lines = [view[0, 0].amin(axis) for axis in (0, 1)]
        assert any(torch.equal(line.expand(20, 20).mT if axis else line.expand(20, 20), view[0, 0])
                   for axis, line in enumerate(lines))  # fmt: skip
        cut += bool((view == 0).any())
    assert 8 <= cut <= 30


@pytest.mark.parametrize("ndim", [2, 3])
def test_thick_slices_keep_a_constant_and_what_varies_along_the_other_axes(ndim):
    shape = (12, 9, 10)[:ndim]
    constant = torch.full((2, 3, *shape), 0.7)
    torch.testing.assert_close(thick(constant, 3.0, 0), constant)
    along = torch.rand(2, 3, 1, *shape[1:], generator=generator_of(0)).expand(2, 3, *shape).contiguous()
    torch.testing.assert_close(thick(along, 3.0, 0), along)
    assert thick(torch.rand(2, 3, *shape, generator=generator_of(1)), 4.0, 1).std() < 0.25
    assert torch.equal(thick(along, 1.0, 0), along)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_put_around_a_brain_leaves_its_labels_alone(shape):
    labels = body(shape)
    whole = surround(labels, 5, 4.0, 3, False, generator_of(0))
    assert torch.equal(whole[labels > 0], labels[labels > 0])
    assert whole[labels == 0].min() == 0 or whole[labels == 0].min() >= 5
    assert {5, 6, 7} <= set(whole.unique().tolist()) and whole.max() < 5 + 3 + 3
    stripped = surround(labels, 5, 4.0, 3, True, generator_of(0))
    assert stripped.max() == 5 and torch.equal(stripped == 5, whole == 5)


def test_a_random_shape_is_where_its_field_is_largest_and_all_appear():
    labels = random_shapes((40, 40), 6, 5.0, generator_of(0))
    assert labels.dtype == torch.uint8 and labels.unique().tolist() == list(range(6))
    same = (labels[..., 1:, :] == labels[..., :-1, :]).float().mean()
    assert same > 0.8  # shapes, not noise


@pytest.mark.parametrize("ndim", [2, 3])
def test_the_module_makes_pairs_of_the_sample_tissue_maps_and_of_shapes(ndim):
    data = SynthesisData({"ndim": ndim, "spacing": 8.0}, "sample", 26, pairs=6, shapes_share=0.5)
    batches = list(data.train_dataloader())
    assert {batch["id"][0].split("-")[0][:3] for batch in batches} == {"map", "sha"}
    for batch in batches:
        assert batch["moving"].shape == (1, 1, *[26] * ndim)
        if batch["id"][0].startswith("map"):
            assert batch["fixed_labels"].unique().tolist() == [0, 1, 2]
    assert len(list(data.val_dataloader())) == 8


def test_mirrored_maps_are_there_as_they_are_and_with_left_and_right_exchanged():
    data = SynthesisData({"ndim": 2, "spacing": 8.0}, "sample", 26, mirrored=True)
    maps = data.dataset().maps
    half = len(maps) // 2
    assert all(torch.equal(one.flip(2), other) for one, other in zip(maps[:half], maps[half:], strict=True))


@pytest.mark.parametrize(
    "wrong", [{"labels": "a.nii.gz"}, {"shape": (8, 8)}, {"shape": 4}, {"spec": {"spacing": None}}]
)
def test_settings_that_make_no_pairs_are_named(wrong):
    with pytest.raises(InputError, match="data"):
        SynthesisData(**wrong)
    with pytest.raises(ValueError, match="two ends"):
        LabelRecipe(anatomy_mm=(2, 1))
    with pytest.raises(ValueError, match="shape_mm must be two ends"):
        LabelRecipe(shape_mm=(0, 1))
    with pytest.raises(ValueError, match="shares"):
        LabelPairs([], (9, 9), 4.0, 1, shapes_share=2)
    with pytest.raises(ValueError, match="need two"):
        LabelPairs([body((9, 9))], (9, 9), 4.0, 1, across=0.5)
