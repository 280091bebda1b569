"""Learn2Reg's lists of pairs."""

import json
from pathlib import Path

import pytest

from regnet.data.learn2reg import displacement_names, read_dataset
from regnet.errors import InputError


def _touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()


def _dataset(folder: Path, **lists: list[dict[str, str]]) -> Path:
    path = folder / "Lung_dataset.json"
    path.write_text(json.dumps({"name": "Lung", "tensorImageShape": {"0": [4, 5, 6]}, **lists}))
    return path


def _entry(fixed: str, moving: str) -> dict[str, str]:
    return {"fixed": f"./imagesTr/{fixed}.nii.gz", "moving": f"./imagesTr/{moving}.nii.gz"}


def test_what_belongs_to_an_image_is_found_beside_it(tmp_path: Path) -> None:
    _touch(
        tmp_path,
        *(f"imagesTr/Lung_000{n}_000{m}.nii.gz" for n in (1, 2) for m in (0, 1)),
        "labelsTr/Lung_0001_0000.nii.gz",
        "labelsTr/Lung_0002_0000.nii.gz",
        "masksTr/Lung_0001_0000.nii.gz",
        "landmarksTr/Lung_0001_0000.csv",
        "keypointsTr/Lung_0001_0000.csv",
        "keypointsTr/Lung_0002_0000.csv",
    )
    path = _dataset(tmp_path, registration_val=[_entry("Lung_0001_0000", "Lung_0002_0000")])
    (pair,) = read_dataset(path)
    assert pair.id == "0001_0000_0002_0000"
    assert pair.fixed == (tmp_path / "imagesTr/Lung_0001_0000.nii.gz",)
    assert pair.moving == (tmp_path / "imagesTr/Lung_0002_0000.nii.gz",)
    assert pair.fixed_labels == tmp_path / "labelsTr/Lung_0001_0000.nii.gz"
    assert pair.moving_labels == tmp_path / "labelsTr/Lung_0002_0000.nii.gz"
    assert pair.fixed_mask == tmp_path / "masksTr/Lung_0001_0000.nii.gz" and pair.moving_mask is None
    assert pair.fixed_points == tmp_path / "landmarksTr/Lung_0001_0000.csv"
    assert pair.moving_points == tmp_path / "keypointsTr/Lung_0002_0000.csv"


@pytest.mark.parametrize(
    ("fixed", "moving", "names"),
    [  # the short name is allowed within a modality and from 0001 to 0000 (LUMIR_L2R#2)
        ("L_0001_0000", "L_0002_0000", ["disp_0001_0000_0002_0000", "disp_0001_0002"]),
        ("L_0001_0000", "L_0001_0001", ["disp_0001_0000_0001_0001", "disp_0001_0001"]),
        ("L_0001_0001", "L_0001_0000", ["disp_0001_0001_0001_0000"]),
        ("one", "two", []),
    ],
)
def test_a_displacement_has_the_names_that_the_challenge_accepts(
    fixed: str, moving: str, names: list[str], tmp_path: Path
) -> None:
    _touch(tmp_path, f"imagesTr/{fixed}.nii.gz", f"imagesTr/{moving}.nii.gz")
    (pair,) = read_dataset(_dataset(tmp_path, registration_val=[_entry(fixed, moving)]))
    assert displacement_names(pair) == names


def test_the_split_chooses_the_list_and_a_configuration_has_one(tmp_path: Path) -> None:
    _touch(tmp_path, *(f"imagesTr/L_000{n}_0000.nii.gz" for n in (1, 2, 3)))
    one, two = _entry("L_0001_0000", "L_0002_0000"), _entry("L_0002_0000", "L_0003_0000")
    path = _dataset(tmp_path, registration_val=[one], registration_test=[two, one])
    assert len(read_dataset(path)) == 1 and len(read_dataset(path, "test")) == 2
    with pytest.raises(InputError, match="no list of pairs training_paired_images"):
        read_dataset(path, "train")
    with pytest.raises(InputError, match="no split 'nowhere'"):
        read_dataset(path, "nowhere")
    assert [pair.id for pair in read_dataset(_dataset(tmp_path, eval_pairs=[two]))] == ["0002_0000_0003_0000"]


def test_a_file_that_is_no_such_list_is_refused_in_one_line(tmp_path: Path) -> None:
    _touch(tmp_path, "imagesTr/L_0001_0000.nii.gz")
    with pytest.raises(InputError, match="cannot be read"):
        read_dataset(tmp_path / "missing.json")
    (tmp_path / "other.json").write_text("{")
    with pytest.raises(InputError, match="not a JSON file"):
        read_dataset(tmp_path / "other.json")
    for content, message in (
        ([], "no list of pairs"),
        ({"eval_pairs": [{"fixed": "a"}]}, "names a fixed and a moving"),
        ({"eval_pairs": [_entry("L_0001_0000", "L_0009_0000")]}, "L_0009_0000.nii.gz does not exist"),
        ({"eval_pairs": [_entry("L_0001_0000", "L_0001_0000")] * 2}, "twice"),
    ):
        (tmp_path / "other.json").write_text(json.dumps(content))
        with pytest.raises(InputError, match=message):
            read_dataset(tmp_path / "other.json")
