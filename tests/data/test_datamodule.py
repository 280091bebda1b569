import logging

import lightning
import pytest
import torch

from regnet.data import Augmentation, InputSpec, PairsData, Recipe, SyntheticData
from regnet.errors import InputError

from .heads import grid_of, head, labels_of, save


@pytest.fixture
def folder(tmp_path):
    for name, grid in (("a", grid_of(4.0)), ("b", grid_of((3.0, 4.0, 5.0), signs=(-1, 1, 1)))):
        image = head(grid)
        save(tmp_path / f"{name}.nii.gz", image)
        save(tmp_path / f"{name}_labels.nii.gz", labels_of(image))
    return tmp_path


class Witness(lightning.LightningModule):
    """A model that only writes down what it is shown."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.trained, self.validated = [], []

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

    def training_step(self, batch):
        self.trained += list(zip(batch["id"], batch["moving"].double().sum((1, 2, 3, 4)).tolist(), strict=True))
        return self.weight * batch["moving"].mean()

    def validation_step(self, batch):
        self.validated += batch["id"]


def fit(data, epochs, folder, ckpt_path=None):
    model = Witness()
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_epochs=epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        log_every_n_steps=1,
        default_root_dir=folder,
    )
    trainer.fit(model, data, ckpt_path=ckpt_path)
    return model, trainer


@pytest.mark.filterwarnings("ignore:.*num_workers.*", "ignore:.*LeafSpec.*:FutureWarning")
def test_a_resumed_training_draws_what_the_unbroken_one_would(folder):
    def data():
        images, labels = (
            [folder / "a.nii.gz", folder / "b.nii.gz"],
            [folder / "a_labels.nii.gz", folder / "b_labels.nii.gz"],
        )
        return SyntheticData({"spacing": 8.0}, images, labels, pairs=4, validation_pairs=2, batch_size=2, seed=3)

    whole, _ = fit(data(), 3, folder)
    assert len(set(whole.trained)) == 12
    assert whole.validated == 3 * ["a-val-0000", "b-val-0001"]
    first, trainer = fit(data(), 2, folder)
    trainer.save_checkpoint(folder / "last.ckpt")
    second, _ = fit(data(), 3, folder, folder / "last.ckpt")
    assert first.trained + second.trained == whole.trained


@pytest.mark.parametrize("ndim", [2, 3])
def test_the_sample_brains_make_pairs_of_one_shape(ndim):
    data = SyntheticData(InputSpec(ndim=ndim, spacing=8.0), pairs=2, batch_size=2)
    (batch,) = data.train_dataloader()
    assert batch["moving"].shape == batch["fixed"].shape
    assert batch["moving"].ndim == ndim + 2
    assert batch["flow"].shape[:2] == (2, ndim)
    assert batch["moving_labels"].max() == 2
    assert len(data.val_dataloader()) == 8


def test_shape_and_recipe_are_taken_as_plain_values(folder):
    data = SyntheticData(
        {"spacing": 8.0},
        images=[str(folder / "a.nii.gz")],
        shape=[12, 14, 10],
        recipe={"displacement_mm": [1, 2], "flip": False},
        pairs=1,
    )
    assert data.recipe == Recipe(displacement_mm=(1.0, 2.0), flip=False)
    (batch,) = data.train_dataloader()
    assert batch["moving"].shape == (1, 1, 12, 14, 10)
    assert "moving_labels" not in batch


def test_labels_that_do_not_fit_are_refused_by_name(folder):
    data = SyntheticData(images=[folder / "a.nii.gz"], labels=[folder / "b_labels.nii.gz"])
    with pytest.raises(InputError, match=r"b_labels.nii.gz: shape .* differs from .* of .*a.nii.gz"):
        data.setup()
    with pytest.raises(InputError, match="0 files for 1 images"):
        SyntheticData(images=[folder / "a.nii.gz"], labels=[])


def test_a_table_is_split_by_its_column(folder):
    (folder / "pairs.csv").write_text(
        "id,moving,fixed,split\none,a.nii.gz,b.nii.gz,train\ntwo,b.nii.gz,a.nii.gz,val\nthree,a.nii.gz,a.nii.gz,test\n"
    )
    data = PairsData(folder / "pairs.csv", {"spacing": 8.0})
    loaders = (data.train_dataloader(), data.val_dataloader(), data.test_dataloader())
    assert [[name for batch in loader for name in batch["id"]] for loader in loaders] == [["one"], ["two"], ["three"]]


def test_a_table_without_splits_trains_and_validates_on_all_and_says_so(folder, caplog):
    (folder / "pairs.csv").write_text("id,moving,fixed\none,a.nii.gz,b.nii.gz\ntwo,b.nii.gz,a.nii.gz\n")
    data = PairsData(folder / "pairs.csv", {"spacing": 8.0}, batch_size=2)
    with caplog.at_level(logging.WARNING):
        (batch,) = data.train_dataloader()
    assert sorted(batch["id"]) == ["one", "two"]  # of different sizes, in one batch
    assert [name for batch in data.val_dataloader() for name in batch["id"]] == ["one", "two"]
    assert "validating on the training pairs" in caplog.text
    with pytest.raises(InputError, match="no row has the split 'test'"):
        data.test_dataloader()


def test_a_table_without_training_rows_is_refused(folder):
    (folder / "pairs.csv").write_text("moving,fixed,split\na.nii.gz,b.nii.gz,test\n")
    with pytest.raises(InputError, match="no row has the split 'train'"):
        PairsData(folder / "pairs.csv").setup()


@pytest.mark.parametrize(
    ("name", "value"),
    [("images", "a.nii"), ("labels", "a.nii"), ("shape", (3, 3)), ("shape", "abc"), ("shape", (0, 4, 4))],
)
def test_a_list_that_is_none_is_refused_by_name(name, value):
    settings = {"images": ["b.nii"], name: value}
    with pytest.raises(InputError, match=f"data.{name}"):
        SyntheticData(InputSpec(), **settings)


def study(folder):
    rows = "".join(f"s{n},{'ab'[n % 2]}.nii.gz,{'ab'[n % 2]}_labels.nii.gz,p{n // 2}\n" for n in range(8))
    (folder / "images.csv").write_text("subject,image,labels,group\n" + rows)
    return folder / "images.csv"


def test_people_are_shared_out_and_their_images_paired_within_each_split(folder):
    data = PairsData(study(folder), {"spacing": 8.0}, split={"val": 0.25, "test": 0.25}, pairing="within")
    splits = {name: {pair.group or pair.id for pair in data.dataset(name).rows} for name in ("train", "val", "test")}
    assert [len(found) for found in splits.values()] == [4, 2, 2]
    people = {
        name: {f"p{int(word[1:]) // 2}" for pair in found for word in pair.split("_to_")}
        for name, found in splits.items()
    }
    assert not people["train"] & people["val"] and not people["val"] & people["test"]


def test_the_length_of_an_epoch_and_of_the_validation_are_given_apart(folder):
    data = PairsData(study(folder), {"spacing": 8.0}, split={"val": 0.5}, length=5, validation_length=2)
    assert len(data.train_dataloader().dataset) == 5 and len(data.val_dataloader().dataset) == 2
    assert len(data.dataset("train", training=True).rows) == 12


@pytest.mark.filterwarnings("ignore:.*num_workers.*", "ignore:.*LeafSpec.*:FutureWarning")
def test_training_is_augmented_and_cached_and_validation_stays_as_it_is(folder):
    (folder / "pairs.csv").write_text("id,moving,fixed,split\none,a.nii.gz,b.nii.gz,train\ntwo,b.nii.gz,a.nii.gz,val\n")

    def seen(augmentation):
        data = PairsData(
            folder / "pairs.csv", {"spacing": 8.0}, augmentation=augmentation, cache=str(folder / "cache"), seed=3
        )
        return fit(data, 2, folder)[0]

    plain, augmented, again = seen(None), seen(Augmentation(shift_mm=9.0)), seen(Augmentation(shift_mm=9.0))
    assert plain.trained[0] == plain.trained[1]
    assert len({value for _, value in plain.trained + augmented.trained}) == 3  # another one every epoch
    assert augmented.trained == again.trained
    assert len(list((folder / "cache").glob("*/*.safetensors"))) == 6


@pytest.mark.parametrize("name", ["a b", "a,b", "a(1)", "数据"])
def test_a_study_may_lie_in_a_folder_of_any_name(name, folder, tmp_path):
    # case C-74, as far as it is about data: such a path is found, whatever the shell makes of it
    there = tmp_path / name
    there.mkdir()
    for file in ("a.nii.gz", "b.nii.gz"):
        (folder / file).rename(there / file)
    (there / "pairs.csv").write_text("moving,fixed\na.nii.gz,b.nii.gz\n")
    (batch,) = PairsData(str(there / "pairs.csv"), {"spacing": 8.0}, cache=str(there / "cache")).train_dataloader()
    assert batch["moving"].shape == batch["fixed"].shape


def test_a_relative_path_of_a_table_is_from_where_the_command_was_called(folder, monkeypatch):
    # case C-67, as far as it is about data: images are named from the table's folder
    (folder / "pairs.csv").write_text("moving,fixed\na.nii.gz,b.nii.gz\n")
    monkeypatch.chdir(folder.parent)
    data = PairsData(f"{folder.name}/pairs.csv", {"spacing": 8.0})
    data.setup()
    assert data.dataset("", "train").rows[0].moving[0].exists()
