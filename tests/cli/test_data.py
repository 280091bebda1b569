"""``regnet data check`` on studies with one thing wrong each."""

import json
import shutil

import pytest
import torch

from regnet.data import read_rows
from regnet.data.check import findings, read_files
from regnet.io.image import Image
from tests.data.heads import grid_of, head, labels_of, save

from .command import refused, regnet


@pytest.fixture
def study(tmp_path):
    """Three heads with labels, masks and landmarks, and a table that finds nothing wrong with them."""
    for name, spacing in (("a", 8.0), ("b", 9.0), ("c", 10.0)):
        image = head(grid_of(spacing))
        save(tmp_path / f"{name}.nii.gz", image)
        save(tmp_path / f"{name}_labels.nii.gz", labels_of(image))
        (tmp_path / f"{name}.csv").write_text("x,y,z,t,label\n1,2,3,0,1\n4,5,6,0,2\n")
    table = "id,moving,fixed,moving_labels,fixed_labels,moving_mask,fixed_mask,moving_points,fixed_points,split\n"
    row = "ab,a.nii.gz,b.nii.gz,a_labels.nii.gz,b_labels.nii.gz,a_labels.nii.gz,b_labels.nii.gz,a.csv,b.csv,train\n"
    (tmp_path / "pairs.csv").write_text(table + row)
    return tmp_path


def found(study, table=None):
    if table is not None:
        (study / "pairs.csv").write_text(table)
    rows = read_rows(study / "pairs.csv", files=False)
    return {finding.name: finding for finding in findings(rows, read_files(rows, 2))}


def test_a_study_with_nothing_wrong_passes_and_is_told_in_a_table_and_in_json(study, capsys):
    assert regnet("data", "check", study / "pairs.csv", "--out", study / "report.json") == 0
    printed = capsys.readouterr().out
    assert "1 rows, 6 files, 0 errors, 0 other findings" in printed and "10 x 12 x 9" in printed
    report = json.loads((study / "report.json").read_text("utf-8"))
    facts = report["files"][str(study / "a.nii.gz")]
    assert facts["shape"] == [10, 12, 9] and facts["spacing"] == [8.0] * 3 and facts["orientation"] == "RAS"
    assert facts["low"] == 0 and 60 < facts["high"] < 110 and facts["not_finite"] == 0
    assert report["files"][str(study / "b_labels.nii.gz")]["labels"] == [1, 2]
    assert report["files"][str(study / "a.csv")] == {"kind": "points", "points": 2}
    assert report["findings"] == []


def test_an_error_gives_status_1_and_what_to_do(study, capsys):
    (study / "pairs.csv").write_text("moving,fixed\na.nii.gz,gone.nii.gz\na.nii.gz,b.nii.gz\n")
    assert regnet("data", "check", study / "pairs.csv", "--out", study / "report.json") == 1
    assert "cannot be read" in capsys.readouterr().out
    (finding,) = json.loads((study / "report.json").read_text("utf-8"))["findings"]
    assert finding["severity"] == "error" and finding["where"] == [f"{study / 'gone.nii.gz'}: no such file"]
    assert "restore the file" in finding["remedy"]
    assert "exists already" in refused(capsys, "data", "check", study / "pairs.csv", "--out", study / "report.json")
    assert "cannot be read" in refused(capsys, "data", "check", study / "none.csv")
    assert "at least 1" in refused(capsys, "data", "check", study / "pairs.csv", "--jobs", 0)


def test_images_that_cannot_be_trained_on_are_named(study):
    image = head(grid_of(8.0))
    image.data[0, 1, 2, 3] = torch.nan
    save(study / "nan.nii", image)
    save(study / "flat.nii", Image(torch.full_like(image.data, 3.0), image.grid))
    (study / "cut.nii.gz").write_bytes((study / "a.nii.gz").read_bytes()[:-300])
    names = found(
        study, "subject,image\n" + "".join(f"{n},{n}\n" for n in ("nan.nii", "flat.nii", "cut.nii.gz", "a.nii.gz"))
    )
    assert names["NaN or infinite"].where == (f"{study / 'nan.nii'}: 1 voxels",)
    assert names["constant image"].where == (str(study / "flat.nii"),)
    assert names["cannot be read"].where[0].startswith(str(study / "cut.nii.gz"))
    assert {finding.severity for finding in names.values()} == {"error"}


def test_what_does_not_go_together_is_named(study):
    image = head(grid_of(8.0))
    far = image.grid.window((1000, 0, 0), image.grid.shape)
    save(study / "far.nii", Image(image.data + 1, far))
    (study / "few.csv").write_text("x,y,z,t,label\n1,2,3,0,1\n")
    save(study / "none.nii", Image(torch.zeros_like(image.data), image.grid))
    names = found(
        study,
        "id,moving,fixed,moving_labels,fixed_mask,moving_points,fixed_points\n"
        "one,a.nii.gz,b.nii.gz,b_labels.nii.gz,,a.csv,few.csv\n"
        "two,far.nii,b.nii.gz,,,,\n"
        "three,b.nii.gz,a.nii.gz,,none.nii,,\n",
    )
    assert names["other voxels than its image"].where == (f"{study / 'b_labels.nii.gz'} and {study / 'a.nii.gz'}",)
    assert names["landmarks that do not go together"].where == ("one: 1 and 2",)
    assert names["no overlap in the world"].where == ("two",)
    assert names["empty mask or labels"].where == (str(study / "none.nii"),)


def test_copies_are_found_by_content_and_so_is_who_is_in_two_splits(study):
    image = head(grid_of(8.0))
    save(study / "copy.nii", image)  # not compressed
    shutil.copy(study / "b.nii.gz", study / "again.nii.gz")
    names = found(
        study,
        "id,moving,fixed,split,group\none,a.nii.gz,b.nii.gz,train,ann\ntwo,c.nii.gz,again.nii.gz,val,ann\n"
        "three,copy.nii,a.nii.gz,train,\n",
    )
    copies = names["same content under several names"]
    assert set(copies.where) == {
        f"{study / 'a.nii.gz'} = {study / 'copy.nii'}",
        f"{study / 'b.nii.gz'} = {study / 'again.nii.gz'}",
    }
    assert copies.severity == "warning" and names["moving and fixed are the same"].where == ("three",)
    assert names["image in several splits"].where == (f"{study / 'b.nii.gz'}: train, val",)
    assert names["group in several splits"].where == ("ann: train, val",)


def test_labels_that_are_missing_are_named(study):
    labels = labels_of(head(grid_of(10.0)))
    labels.data[labels.data == 2] = 7
    save(study / "c_labels.nii.gz", labels)
    names = found(
        study,
        "subject,image,labels\na,a.nii.gz,a_labels.nii.gz\nb,b.nii.gz,\nc,c.nii.gz,c_labels.nii.gz\n",
    )
    assert names["image without labels"].where == (str(study / "b.nii.gz"),)
    assert names["label that some maps lack"].where == ("2: in 1 of 2 maps", "7: in 1 of 2 maps")


def test_several_orientations_are_told(study):
    save(study / "las.nii", head(grid_of(8.0, signs=(-1, 1, 1))))
    names = found(study, "moving,fixed\nlas.nii,b.nii.gz\n")
    assert names["several orientations"].where == ("LAS: 1", "RAS: 1")
    assert names["several orientations"].severity == "note"
