import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from regnet import ops
from regnet.data.datasets import SyntheticPairs
from regnet.data.loading import EpochSampler, collate
from regnet.data.normalise import normalise
from regnet.data.reader import read_channels
from regnet.data.spec import InputSpec
from regnet.data.synthesis import Recipe, make_sources
from regnet.data.table import read_table
from regnet.data.table_pairs import TablePairs
from regnet.errors import InputError
from regnet.io.displacement import write_displacement
from regnet.io.image import Image, read_image

from .heads import grid_of, head, labels_of, save

SPEC = InputSpec(spacing=8.0, margin_mm=8.0)


@pytest.fixture(scope="module")
def synthetic():
    images = [head(grid_of(4.0))]
    sources = make_sources(images, [labels_of(images[0])], SPEC)

    def make(seed=0, training=True, length=8):
        return SyntheticPairs(sources, SPEC, length, Recipe(), seed, training)

    return make


def drawn(dataset, epochs, workers):
    """What two epochs draw, as (id, a number of the moving image)."""
    sampler = EpochSampler(dataset, seed=dataset.seed)
    loader = DataLoader(
        dataset,
        batch_size=2,
        sampler=sampler,
        num_workers=workers,
        collate_fn=collate,
        persistent_workers=workers > 0,
        multiprocessing_context="fork" if workers else None,
    )
    found = []
    for epoch in epochs:
        sampler.set_epoch(epoch)
        for batch in loader:
            found += list(zip(batch["id"], batch["moving"].double().sum((1, 2, 3, 4)).tolist(), strict=True))
    return found


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # Python 3.12 warns of any fork
def test_sixteen_items_of_two_epochs_are_distinct_and_repeat_whatever_the_workers(synthetic):
    # case C-59
    alone = drawn(synthetic(), (0, 1), workers=0)
    assert len({value for _, value in alone}) == 16
    assert len({name for name, _ in alone}) == 16
    assert drawn(synthetic(), (0, 1), workers=2) == alone
    assert drawn(synthetic(), (1,), workers=2) == alone[8:]  # a resumed run draws what the unbroken one would
    assert not {value for _, value in drawn(synthetic(seed=1), (0, 1), workers=0)} & {value for _, value in alone}


def test_validation_pairs_stay_the_same_and_are_never_trained_on(synthetic):
    validation = synthetic(training=False)
    for index in range(4):
        first, later = validation[(0, index)], validation[(9, index)]
        assert torch.equal(first["moving"], later["moving"]) and first["id"] == later["id"]
        assert not torch.equal(first["moving"], synthetic()[(0, index)]["moving"])


def test_an_item_has_the_documented_keys(synthetic):
    item = synthetic()[(2, 5)]
    spatial = item["moving"].shape[1:]
    assert item["id"] == "image-0002-0005" and item["index"] == 5
    for name, channels in (("fixed", 1), ("view", 1), ("flow", 3), ("moving_labels", 1), ("fixed_labels", 1)):
        assert item[name].shape == (channels, *spatial), name
    assert len(synthetic()) == 8
    with pytest.raises(IndexError):
        synthetic()[8]


@pytest.fixture
def study(tmp_path):
    """Three heads of other shapes, spacings and orientations, with labels."""
    grids = {
        "a": grid_of(2.0),
        "b": grid_of((2.5, 2.0, 3.0), signs=(-1, 1, 1), half=(44.0, 40.0, 36.0)),
        "c": grid_of(3.0, turn=12.0),
    }
    for name, grid in grids.items():
        image = head(grid)
        save(tmp_path / f"{name}.nii.gz", image, slope=0.05 if name == "b" else None)
        labels = labels_of(image)
        save(tmp_path / f"{name}_labels.nii.gz", labels)

    def table(text):
        path = tmp_path / "table.csv"
        path.write_text(text)
        return read_table(path)

    table.folder = tmp_path
    return table


def test_pairs_of_any_storage_are_prepared_on_the_fixed_grid(study):
    rows = study(
        "id,moving,fixed,moving_labels,fixed_labels\n"
        "ab,a.nii.gz,b.nii.gz,a_labels.nii.gz,b_labels.nii.gz\n"
        "ca,c.nii.gz,a.nii.gz,,\n"
    )
    dataset = TablePairs(rows, InputSpec(margin_mm=8.0))
    first, second = dataset[0], dataset[(1, 1)]
    assert (first["id"], second["id"], second["index"]) == ("ab", "ca", 1)
    assert first["moving"].shape == first["fixed"].shape
    # the same head, so prepared alike: the pair is registered already
    assert (first["moving"] - first["fixed"]).abs().mean() < 0.01
    assert (first["moving_labels"] == first["fixed_labels"]).float().mean() > 0.97
    assert not second["moving_labels"].any() and not second["fixed_labels"].any()  # none in the table: empty
    assert torch.equal(dataset[0]["moving"], first["moving"])  # from the cache
    batch = collate([first, second])
    assert batch["moving"].shape[0] == 2


def test_channels_are_joined_and_must_lie_on_one_grid(study):
    (pair,) = study("moving,fixed\na.nii.gz;a_labels.nii.gz,b.nii.gz;b_labels.nii.gz\n")
    item = TablePairs((pair,), InputSpec(channels=2))[0]
    assert item["moving"].shape[0] == item["fixed"].shape[0] == 2
    with pytest.raises(InputError, match=r"b.nii.gz: shape .* differs from .*a.nii.gz"):
        read_channels([study.folder / "a.nii.gz", study.folder / "b.nii.gz"])


def test_unpaired_subjects_are_paired_anew_every_epoch_but_not_in_validation(study):
    rows = study(
        "subject,image,labels\na,a.nii.gz,a_labels.nii.gz\nb,b.nii.gz,b_labels.nii.gz\nc,c.nii.gz,c_labels.nii.gz\n"
    )
    training, validation = TablePairs(rows, SPEC), TablePairs(rows, SPEC, training=False)
    ids = [[training[(epoch, index)]["id"] for index in range(3)] for epoch in range(6)]
    assert {names[0] for names in ids} == {"b_to_a", "c_to_a"}
    again = TablePairs(rows, SPEC)
    assert ids == [[again[(epoch, index)]["id"] for index in range(3)] for epoch in range(6)]
    assert [validation[(epoch, 2)]["id"] for epoch in (0, 5)] == ["a_to_c", "a_to_c"]
    with pytest.raises(InputError, match="one unpaired image"):
        TablePairs(rows[:1], SPEC)


def test_a_known_warp_travels_with_its_pair(study):
    fixed = read_image(study.folder / "a.nii.gz")
    flow = torch.zeros(3, *fixed.grid.shape)
    flow[1] = 2.0  # voxels of 2 mm
    write_displacement(study.folder / "warp.nii.gz", flow, fixed.grid.affine)
    (pair,) = study("moving,fixed,true_warp\nc.nii.gz,a.nii.gz,warp.nii.gz\n")
    item = TablePairs((pair,), InputSpec(margin_mm=8.0))[0]
    assert item["flow"].shape == (3, *item["fixed"].shape[1:])
    torch.testing.assert_close(item["flow"][1], torch.ones_like(item["flow"][1]), atol=1e-4, rtol=0)


@pytest.mark.parametrize("case", ["nan", "constant", "labels"])
def test_a_bad_image_stops_training_with_one_line_that_names_it(study, case):
    # cases C-36 and issue 2: NaN, constant, shapes that differ between image and label
    image = head(grid_of(2.0))
    if case == "nan":
        image.data[0, 3, 3, 3] = np.nan
    elif case == "constant":
        image.data[:] = 1
    save(study.folder / "bad.nii.gz", image)
    labels = "b_labels.nii.gz" if case == "labels" else "a_labels.nii.gz"
    (pair,) = study(f"moving,fixed,moving_labels,fixed_labels\nbad.nii.gz,a.nii.gz,{labels},a_labels.nii.gz\n")
    with pytest.raises(InputError, match=labels if case == "labels" else r"bad\.nii\.gz") as error:
        TablePairs((pair,), SPEC)[0]
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["displacement_mm", "scales_mm"])
@pytest.mark.parametrize("value", [3, "ab", (), (-1.0, 2.0), (3.0, 1.0), (1.0, 2.0, 3.0)])
def test_a_recipe_that_makes_no_sense_is_refused_by_name(name, value):
    if name == "scales_mm" and isinstance(value, tuple) and value and min(value) > 0:
        assert Recipe(scales_mm=value).scales_mm == value
        return
    with pytest.raises(ValueError, match=name):
        Recipe(**{name: value})


@pytest.mark.parametrize("length", [0, -1, "many", 2.5])
def test_an_epoch_has_a_whole_number_of_pairs(synthetic, length):
    with pytest.raises(ValueError, match="positive length"):
        synthetic(length=length)


def test_a_pair_that_lies_in_different_places_is_named(tmp_path):
    image = head(grid_of(4.0))
    save(tmp_path / "a.nii", image)
    save(tmp_path / "b.nii", Image(image.data, image.grid.window((1000, 0, 0), image.grid.shape)))
    (tmp_path / "pairs.csv").write_text("moving,fixed\nb.nii,a.nii\n")
    with pytest.raises(InputError, match=r"b\.nii and .*a\.nii: do not overlap"):
        TablePairs(read_table(tmp_path / "pairs.csv"), InputSpec(spacing=8.0))[0]


def test_a_moving_image_of_another_affine_travels_on_its_own_voxels(tmp_path):
    fixed, moving = head(grid_of(2.0)), head(grid_of((3.0, 2.5, 2.0), signs=(-1, 1, 1), turn=9.0))
    save(tmp_path / "fixed.nii.gz", fixed)
    save(tmp_path / "moving.nii.gz", moving)
    (tmp_path / "pairs.csv").write_text("moving,fixed\nmoving.nii.gz,fixed.nii.gz\n")
    spec = InputSpec(spacing=2.0, margin_mm=None)
    item = TablePairs(read_table(tmp_path / "pairs.csv"), spec)[0]
    torch.testing.assert_close(item["source"][:-1], normalise(moving.data, spec), atol=1e-3, rtol=0)
    assert bool((item["source"][-1] == 1).all())
    nothing = torch.zeros(1, 3, *item["fixed"].shape[1:])
    there = ops.warp(item["source"][None], nothing, bound="replicate", extrapolate="edge", matrix=item["matrix"][None])
    torch.testing.assert_close(there[0, :-1], item["moving"], atol=2e-3, rtol=0)
    torch.testing.assert_close(there[0, -1:], item["view"], atol=1e-5, rtol=0)


def test_own_voxels_finer_than_the_network_s_are_averaged_and_padded_ones_are_out_of_view(tmp_path):
    for name, spacing in (("a", 2.0), ("b", 5.0), ("c", 3.0)):
        save(tmp_path / f"{name}.nii.gz", head(grid_of(spacing)))
    (tmp_path / "pairs.csv").write_text("moving,fixed\na.nii.gz,c.nii.gz\nb.nii.gz,c.nii.gz\n")
    items = [TablePairs(read_table(tmp_path / "pairs.csv"), InputSpec(spacing=4.0))[i] for i in range(2)]
    assert [tuple(item["source"].shape) for item in items] == [(2, 20, 23, 17), (2, 16, 19, 14)]
    batch = collate(items)
    assert batch["source"].shape == (2, 2, 20, 23, 17)
    assert batch["matrix"].shape == (2, 3, 4)
    assert float(batch["source"][1, -1].sum()) == 16 * 19 * 14
