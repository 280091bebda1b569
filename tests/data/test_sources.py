"""Where pairs come from: tables, folders, BIDS, Learn2Reg; and the layouts of the public data sets."""

import json

import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf

from regnet.config import config_dir
from regnet.data import Bids, Folder, Pair, Subject, read_rows
from regnet.data.learn2reg import read_task
from regnet.data.study import Study
from regnet.errors import InputError


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def study_of(config, **overrides):
    """The pairs that a shipped data configuration finds."""
    block = OmegaConf.load(config_dir() / "data" / f"{config}.yaml")
    block = OmegaConf.merge(OmegaConf.load(config_dir() / "data" / "pairs.yaml"), block, overrides, {"seed": 0})
    del block["defaults"]
    data = instantiate(block, _convert_="all")
    data.setup()
    return data


def test_a_table_in_json_is_a_table(tmp_path):
    touch(tmp_path, "a.nii", "b.nii", "c.nii")
    rows = [
        {"id": "one", "moving": ["a.nii", "b.nii"], "fixed": "b.nii;c.nii", "split": "val"},
        {"moving": "a.nii", "fixed": "c.nii"},
    ]
    for content in (rows, {"pairs": rows}):
        (tmp_path / "pairs.json").write_text(json.dumps(content))
        first, second = read_rows(tmp_path / "pairs.json")
        assert first == Pair(
            "one", (tmp_path / "a.nii", tmp_path / "b.nii"), (tmp_path / "b.nii", tmp_path / "c.nii"), split="val"
        )
        assert second.id == "0002" and second.split == ""
    for content, message in (
        ("{", "not a JSON"),
        ('{"a": 1}', "a list of objects"),
        ("[]", "is empty"),
        ("[1]", "list of objects"),
    ):
        (tmp_path / "pairs.json").write_text(content)
        with pytest.raises(InputError, match=message):
            read_rows(tmp_path / "pairs.json")
    with pytest.raises(InputError, match="is a folder"):
        read_rows(tmp_path)


def test_a_folder_is_read_by_the_pattern_of_its_names(tmp_path):
    touch(
        tmp_path,
        *(f"{s}/{v}/{s}_t{m}.nii.gz" for s in ("ann", "bob") for v in (1, 2) for m in (1, 2)),
        "ann/1/seg.nii.gz",
        "ann/2/bob_t1.nii.gz",
        "cy/1/cy_t1.nii.gz",
    )
    found = Folder(
        tmp_path,
        ["{subject}/{visit}/{subject}_t1.nii.gz", "{subject}/{visit}/{subject}_t2.nii.gz"],
        labels="{subject}/{visit}/seg.nii.gz",
        split={"val": "bob_.*"},
    ).read()
    # cy has no second channel, and ann/2/bob_t1 is nobody's
    assert [(s.id, s.group, s.split) for s in found] == [
        ("ann_1", "ann", "unused"),
        ("ann_2", "ann", "unused"),
        ("bob_1", "bob", "val"),
        ("bob_2", "bob", "val"),
    ]
    assert [len(s.image) for s in found] == [2, 2, 2, 2]
    assert [s.labels is not None for s in found] == [True, False, False, False]
    with pytest.raises(InputError, match="'ann' names two images"):
        Folder(tmp_path, "{subject}/*/{subject}_t1.nii.gz").read()
    with pytest.raises(InputError, match="no image is named"):
        Folder(tmp_path, "{subject}/T1w.nii.gz").read()
    with pytest.raises(InputError, match=r"\{run\} is no field"):
        Folder(tmp_path, "{subject}/{visit}/{subject}_t1.nii.gz", labels="{run}.nii.gz").read()
    with pytest.raises(InputError, match="no such folder"):
        Folder(tmp_path / "nowhere", "*").read()


def test_derivatives_in_bids_are_found_with_their_labels_and_masks(tmp_path):
    space = "space-MNI152NLin2009cAsym"
    touch(
        tmp_path,
        *(
            f"sub-{s}/anat/sub-{s}_{space}_{end}.nii.gz"
            for s in ("01", "02")
            for end in ("desc-preproc_T1w", "dseg", "desc-brain_mask", "label-GM_probseg")
        ),
        *(
            f"sub-{s}/anat/sub-{s}_{end}.nii.gz"
            for s in ("01", "02")
            for end in ("desc-preproc_T1w", "dseg", "desc-aseg_dseg")
        ),
        "sub-03/ses-a/anat/sub-03_ses-a_T1w.nii.gz",
        "sub-03/ses-b/anat/sub-03_ses-b_T1w.nii.gz",
    )
    entities = {"space": "MNI152NLin2009cAsym", "desc": "preproc"}
    one, two = Bids(tmp_path, entities=entities).read()
    assert one.id == f"sub-01_{space}_desc-preproc_T1w" and (one.group, two.group) == ("01", "02")
    assert (
        one.labels.name == f"sub-01_{space}_dseg.nii.gz" and one.mask.name == f"sub-01_{space}_desc-brain_mask.nii.gz"
    )
    native = Bids(tmp_path, entities={"space": None, "desc": "preproc"}).read()
    assert [s.labels.name for s in native] == ["sub-01_dseg.nii.gz", "sub-02_dseg.nii.gz"] and native[0].mask is None
    visits = Study(Bids(tmp_path, entities={"desc": None}), "within").pairs("")
    assert [pair.id for pair in visits] == [
        "sub-03_ses-b_T1w_to_sub-03_ses-a_T1w",
        "sub-03_ses-a_T1w_to_sub-03_ses-b_T1w",
    ]
    with pytest.raises(InputError, match=r"no image .*T2w"):
        Bids(tmp_path, "T2w").read()


def l2r(name, *, training=(), paired=(), val=(), key="registration_val", folder="imagesTr"):
    entry = lambda case: f"./{folder if case in validation else 'imagesTr'}/{name}_{case}.nii.gz"  # noqa: E731
    validation = {case for pair in val for case in pair}
    return {
        "name": name,
        "training": [{"image": entry(case)} for case in training],
        "training_paired_images": [{"fixed": entry(f), "moving": entry(m)} for f, m in paired],
        key: [{"fixed": entry(f), "moving": entry(m)} for f, m in val],
    }


def test_oasis_trains_on_pairs_of_the_images_that_are_not_validated_on(tmp_path):
    cases = [f"{n:04d}_0000" for n in range(1, 7)]
    touch(tmp_path, *(f"{part}Tr/OASIS_{case}.nii.gz" for case in cases for part in ("images", "labels", "masks")))
    content = l2r("OASIS", training=cases, val=[(cases[4], cases[5]), (cases[5], cases[4])])
    (tmp_path / "OASIS_dataset.json").write_text(json.dumps(content))
    data = study_of("oasis", pairs=str(tmp_path / "OASIS_dataset.json"))
    training, validation = data.dataset("train", training=True), data.dataset("val")
    assert len(training) == 4 and len(training.rows) == 12 and len(validation) == 2
    assert {pair.fixed[0].name for pair in training.rows} == {f"OASIS_{case}.nii.gz" for case in cases[:4]}
    assert all(pair.fixed_labels and pair.moving_mask for pair in training.rows)
    assert validation.rows[0].id == "0005_0000_0006_0000"


def test_lumir_validates_on_the_pairs_of_its_own_folder(tmp_path):
    cases = [f"{n:04d}_0000" for n in (0, 1, 2, 3454, 3455)]
    touch(tmp_path, *(f"images{'Val' if case > '3' else 'Tr'}/LUMIRMRI_{case}.nii.gz" for case in cases))
    content = l2r("LUMIRMRI", training=cases[:3], val=[(cases[3], cases[4])], key="validation", folder="imagesVal")
    (tmp_path / "LUMIR_dataset.json").write_text(json.dumps(content))
    data = study_of("lumir", pairs=str(tmp_path / "LUMIR_dataset.json"))
    assert len(data.dataset("train", training=True).rows) == 6
    (pair,) = data.dataset("val").rows
    assert pair.fixed[0] == tmp_path / "imagesVal/LUMIRMRI_3454_0000.nii.gz"


def test_nlst_trains_on_its_pairs_with_masks_and_keypoints_in_voxels(tmp_path):
    cases = [f"{n:04d}_000{m}" for n in (1, 2, 3) for m in (0, 1)]
    touch(
        tmp_path,
        *(
            f"{part}Tr/NLST_{case}.{end}"
            for case in cases
            for part, end in (("images", "nii.gz"), ("masks", "nii.gz"), ("keypoints", "csv"))
        ),
    )
    content = l2r("NLST", training=cases, paired=[cases[0:2], cases[2:4]], val=[cases[4:6]])
    (tmp_path / "NLST_dataset.json").write_text(json.dumps(content))
    data = study_of("nlst", pairs=str(tmp_path / "NLST_dataset.json"))
    training = data.dataset("train", training=True)
    assert [pair.id for pair in training.rows] == ["0001_0000_0001_0001", "0002_0000_0002_0001"]
    assert all(pair.moving_points and pair.fixed_mask for pair in training.rows) and data.space == "voxel"


def test_ixi_registers_the_atlas_to_each_subject_of_its_folder(tmp_path):
    names = [f"IXI{n:03d}-{site}-0{n}28-T1" for n, site in ((2, "Guys"), (12, "HH"), (13, "HH"), (14, "IOP"))]
    touch(tmp_path, *(f"IXI-T1/{name}.nii.gz" for name in names), "IXI-T2/IXI002-Guys-0828-T2.nii.gz", "atlas.nii.gz")
    pairs = {"root": str(tmp_path), "image": "IXI-T1/{subject}-{site}-{number}-T1.nii.gz"}
    data = study_of("ixi", pairs={"root": str(tmp_path)}, atlas=str(tmp_path / "atlas.nii.gz"), split={"val": 0.25})
    assert Folder(**pairs).read()[0].id == "IXI002_Guys_0228"
    training, validation = data.dataset("train", training=True), data.dataset("val")
    assert len(training) == 2 and len(validation) == 1  # and one of them is tested
    assert {pair.moving[0].name for pair in training.rows} == {"atlas.nii.gz"}


def test_a_learn2reg_file_without_anything_to_train_on_is_refused(tmp_path):
    (tmp_path / "x.json").write_text(json.dumps({"training": []}))
    with pytest.raises(InputError, match="nothing to train on"):
        read_task(tmp_path / "x.json")
    (tmp_path / "x.json").write_text(json.dumps({"training": [{"image": "./a.nii.gz"}]}))
    with pytest.raises(InputError, match="does not exist"):
        read_task(tmp_path / "x.json")
    with pytest.raises(InputError, match="not a Learn2Reg dataset"):
        (tmp_path / "x.json").write_text("{}")
        read_task(tmp_path / "x.json")


def test_the_atlas_is_an_image_of_the_study_or_a_file(tmp_path):
    touch(tmp_path, "a.nii", "b.nii", "c.nii", "l.nii")
    (tmp_path / "t.csv").write_text(
        "subject,image,labels,split\na,a.nii,l.nii,val\nb,b.nii,l.nii,train\nc,c.nii,,val\n"
    )
    study = Study(tmp_path / "t.csv", "atlas", "a")
    assert [pair.id for pair in study.pairs("train")] == ["a_to_b"] and [p.id for p in study.pairs("val")] == ["a_to_c"]
    study = Study(tmp_path / "t.csv", "atlas", tmp_path / "b.nii", tmp_path / "l.nii")
    assert [pair.id for pair in study.pairs("val")] == ["atlas_to_a", "atlas_to_c"]
    assert study.pairs("val")[0].moving_labels == tmp_path / "l.nii"
    for settings, message in (
        (("atlas", "nobody"), "neither the id"),
        (("atlas",), "go together"),
        (("some",), "one of all"),
        (("within",), "no group"),
    ):
        with pytest.raises(InputError, match=message):
            Study(tmp_path / "t.csv", *settings).pairs("val")


def test_subjects_of_a_table_are_read_with_their_groups(tmp_path):
    touch(tmp_path, "a.nii", "b.nii")
    (tmp_path / "t.csv").write_text("subject,image,group\na1,a.nii,a\na2,b.nii,a\n")
    assert read_rows(tmp_path / "t.csv")[0] == Subject("a1", (tmp_path / "a.nii",), group="a")
