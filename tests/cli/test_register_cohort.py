"""``regnet register --pairs`` and ``--dataset``: what is made, kept, made anew and told of many pairs."""

import json
import zipfile
from pathlib import Path

import nibabel
import numpy as np
import pytest

from regnet.cli import register_cohort
from regnet.inference import initial
from regnet.inference.manifest import read_manifests
from regnet.io import read_header, read_image, read_transform

from .command import refused, regnet, write_pair

_QUICK = ("--model", "none", "--init", "none", "--refine", 1)


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, one after the other; tests/inference/test_engine.py has the others."""

    def here(work, items, jobs=1, engine="local"):  # type: ignore[no-untyped-def]
        yield from ((number, work(item)) for number, item in enumerate(items))

    monkeypatch.setattr(register_cohort, "run_each", here)
    # Most of the time of so small a pair, and tested elsewhere.
    monkeypatch.setattr(initial, "warn_of_orientation", lambda *_: None)


def table(folder: Path, *names: str, bad: str = "") -> Path:
    """A table of pairs, of which ``bad`` has a moving image that is none."""
    rows = ["id,moving,fixed,moving_labels"]
    (folder / "pair").mkdir()
    write_pair(folder / "pair")
    for name in names:
        moving = "pair/moving.nii.gz"
        if name == bad:
            moving = f"{name}.nii.gz"
            (folder / moving).write_bytes(b"no image")
        rows.append(f"{name},{moving},pair/fixed.nii.gz,{'' if name == bad else 'pair/labels.nii.gz'}")
    path = folder / "pairs.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def stamps(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_a_bad_pair_is_told_at_the_end_and_stops_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, pairs = tmp_path / "out", table(tmp_path, "ann", "bad", "bob", bad="bad")
    words = ("register", "--pairs", pairs, "--out", out, *_QUICK)
    assert regnet(*words) == 3
    told = capsys.readouterr()
    assert "2 of 3 pairs are done (0 were before)" in told.out
    lines = told.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("regnet: failed: bad: ") and "bad.nii.gz" in lines[0]
    made = {f"{name}_{what}.nii.gz" for name in ("ann", "bob") for what in ("moved", "warp", "moved_labels")}
    assert set(stamps(out)) == made | {"ann.json", "bad.json", "bob.json"}
    manifests = read_manifests(out)
    assert [manifests[name]["status"] for name in ("ann", "bad", "bob")] == ["done", "failed", "done"]
    assert sorted(manifests["ann"]["outputs"]) == sorted(name for name in made if name.startswith("ann"))
    assert manifests["bad"]["outputs"] == {} and "bad.nii.gz" in manifests["bad"]["error"]
    assert all(len(about["sha256"]) == 64 for about in manifests["ann"]["inputs"].values())
    assert manifests["ann"]["pair"]["fixed"] == [str((tmp_path / "pair/fixed.nii.gz").resolve())]
    assert manifests["bad"]["pair"]["id"] == "bad"
    assert manifests["ann"]["settings"]["refine"] == 1 and manifests["ann"]["seconds"] > 0
    assert read_transform(out / "ann_warp.nii.gz").home is not None

    # Again: what is done stays as it is, also where the folder has moved; what failed is tried again.
    out = out.rename(tmp_path / "moved")
    before = stamps(out)
    assert regnet(*words[:4], out, *_QUICK) == 3
    assert "(2 were before)" in capsys.readouterr().out
    assert {name: time for name, time in stamps(out).items() if name != "bad.json"} == {
        name: time for name, time in before.items() if name != "bad.json"
    }

    # Another setting: all anew, and nothing of before remains where a pair now fails.
    (tmp_path / "pair/moving.nii.gz").write_bytes(b"damaged")
    assert regnet(*words[:4], out, "--init", "none", "--refine", 2) == 3
    assert set(stamps(out)) == {"ann.json", "bad.json", "bob.json"}


def test_shards_are_disjoint_and_together_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, pairs = tmp_path / "out", table(tmp_path, "a", "b", "c")
    for number, names in ((0, {"a", "c"}), (1, {"a", "b", "c"})):
        assert regnet("register", "--pairs", pairs, "--out", out, *_QUICK, "--shard", f"{number}/2") == 0
        assert set(read_manifests(out)) == names
    for word in ("2/2", "1", "-1/2", "0/0"):
        line = refused(capsys, "register", "--pairs", pairs, "--out", out, *_QUICK, f"--shard={word}")
        assert "--shard" in line


def test_names_come_from_a_template_and_must_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, pairs = tmp_path / "new/out", table(tmp_path, "a")
    words = ("register", "--pairs", pairs, "--out", out, *_QUICK)
    assert regnet(*words, "--warp", "fields/disp_{fixed}_{moving}.nii.gz") == 0
    assert (out / "fields/disp_fixed_moving.nii.gz").is_file()
    assert set(stamps(out)) == {"disp_fixed_moving.nii.gz", "a.json"}
    assert "{id}, {fixed} and {moving}" in refused(capsys, *words, "--warp", "{patient}.nii.gz")
    pairs.write_text(pairs.read_text("utf-8") + "b,pair/moving.nii.gz,pair/fixed.nii.gz,\n")
    assert "put {id} into the name" in refused(capsys, *words, "--warp", "w.nii.gz")


def test_files_that_nobody_knows_are_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, pairs = tmp_path / "out", table(tmp_path, "a")
    out.mkdir()
    (out / "a_warp.nii.gz").write_bytes(b"precious")
    assert regnet("register", "--pairs", pairs, "--out", out, *_QUICK) == 3
    assert "exists already" in capsys.readouterr().err
    assert (out / "a_warp.nii.gz").read_bytes() == b"precious"
    assert regnet("register", "--pairs", pairs, "--out", out, *_QUICK, "--overwrite") == 0


def test_options_of_one_pair_and_of_many_do_not_mix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = table(tmp_path, "a")
    words = ("register", "--pairs", pairs, *_QUICK)
    assert "--moving is of one pair" in refused(capsys, *words, "--out", tmp_path / "o", "--moving", pairs)
    assert "needs --out" in refused(capsys, *words)
    assert "--jobs 0" in refused(capsys, *words, "--out", tmp_path / "o", "--jobs", 0)
    assert "nothing to register with" in refused(capsys, *words[:5], "--out", tmp_path / "o", "--init", "none")
    assert "belong together" in refused(capsys, *words, "--out", tmp_path / "o", "--format", "learn2reg")
    assert "no such checkpoint" in refused(capsys, *words, "--out", tmp_path / "o", "--model", tmp_path / "no.ckpt")
    assert "has the split 'test'" in refused(capsys, *words, "--out", tmp_path / "o", "--split", "test")
    assert not (tmp_path / "o").exists()


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    images = tmp_path / "imagesTr"
    images.mkdir()
    moving, fixed, _ = write_pair(tmp_path)
    for number, image in ((1, fixed), (2, moving), (3, moving)):
        (images / f"Head_000{number}_0000.nii.gz").write_bytes(image.read_bytes())
    pairs = [
        {"fixed": "./imagesTr/Head_0001_0000.nii.gz", "moving": f"./imagesTr/Head_000{n}_0000.nii.gz"} for n in (2, 3)
    ]
    path = tmp_path / "Head_dataset.json"
    path.write_text(json.dumps({"name": "Head", "registration_val": pairs}))
    return path


def test_a_submission_has_the_accepted_names_and_form(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = dataset.parent / "sub"
    words = ("register", "--dataset", dataset, "--split", "registration_val", "--format", "learn2reg", "--out", out)
    assert regnet(*words, *_QUICK, "--shard", "0/2") == 0
    assert "1 of 2 pairs are not done yet" in capsys.readouterr().out
    assert not (out / "submission.zip").exists()
    assert regnet(*words, *_QUICK) == 0
    names = ["disp_0001_0000_0002_0000.nii.gz", "disp_0001_0000_0003_0000.nii.gz"]
    with zipfile.ZipFile(out / "submission.zip") as archive:
        assert archive.namelist() == names
        assert archive.testzip() is None
        assert archive.read(names[0]) == (out / names[0]).read_bytes()
    # As the official script reads it: nibabel, channels last, voxels of the two arrays.
    field = nibabel.load(out / names[0])
    fixed = read_image(dataset.parent / "imagesTr/Head_0001_0000.nii.gz")
    assert field.shape == (*fixed.grid.shape, 3) and field.get_data_dtype() == np.float32
    assert np.isnan(field.header["scl_slope"]) or field.header["scl_slope"] in (0, 1)
    moving = read_header(dataset.parent / "imagesTr/Head_0002_0000.nii.gz").grid
    there = read_transform(out / names[0], "learn2reg", moving, fixed.grid)
    middle = fixed.grid.to_world(fixed.grid.to_voxel(fixed.grid.affine[:3, 3]) + 12)
    assert float((there.map_points(middle[None]) - middle).norm()) < 3.0  # the two heads lie 1.5 mm apart
    assert regnet("evaluate", "--dataset", dataset, "--split", "registration_val", "--transforms", out) == 0

    (out / "disp_0001_0000_0009_0000.nii.gz").write_bytes(b"of another split")
    assert "belongs to no pair" in refused(capsys, *words, *_QUICK)
    assert "give no other output" in refused(capsys, *words, *_QUICK, "--moved", "{id}.nii.gz")


def manifest_of(out: Path, name: str, *outputs: str, status: str = "done") -> None:
    """A manifest that anyone may have written."""
    (out / "manifests").mkdir(parents=True, exist_ok=True)
    content = {"id": name, "status": status, "version": "", "settings": {}, "inputs": {}}
    content["outputs"] = {each: {"size": 5, "mtime_ns": 0} for each in outputs}
    (out / f"manifests/{name}.json").write_text(json.dumps(content), encoding="utf-8")


def test_only_what_the_pair_wrote_in_the_folder_is_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, pairs = tmp_path / "out", table(tmp_path, "a", "b")
    manifest_of(out, "a", "../secret", str(tmp_path / "secret"), "link/secret", "b_warp.nii.gz", "fixed.nii.gz", "old")
    manifest_of(out, "b")
    (out / "link").symlink_to(tmp_path)
    kept = [tmp_path / "secret", out / "b_warp.nii.gz", out / "fixed.nii.gz"]
    for path in (*kept, out / "old"):
        path.write_bytes(b"whole")
    # An output of a former run is an input now.
    (out / "fixed.nii.gz").write_bytes((tmp_path / "pair/fixed.nii.gz").read_bytes())
    pairs.write_text(pairs.read_text("utf-8").replace("pair/fixed", "out/fixed"), "utf-8")
    assert regnet("register", "--pairs", pairs, "--out", out, *_QUICK, "--warp", "{id}_warp.nii.gz") == 3
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1 and "failed: b: " in told[0] and "exists already" in told[0]
    assert all(path.is_file() for path in kept) and not (out / "old").exists()
    assert (out / "a_warp.nii.gz").is_file()
    line = refused(capsys, "register", "--pairs", pairs, "--out", out, *_QUICK, "--warp", "{fixed}.nii.gz")
    assert "fixed.nii.gz: is an input of 'a' and an output of 'a'" in line or "put {id}" in line


def test_what_a_killed_pair_leaves_is_looked_for_by_its_own_names(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    out, pairs = tmp_path / "out", table(tmp_path, "a")
    (tmp_path / "secret").write_bytes(b"whole")

    def killed(work, items, jobs=1, engine="local"):  # type: ignore[no-untyped-def]
        manifest_of(out, "a", "../secret", status="running")
        (out / "a_warp.nii.gz").write_bytes(b"half")
        yield 0, OSError("killed")

    monkeypatch.setattr(register_cohort, "run_each", killed)
    assert regnet("register", "--pairs", pairs, "--out", out, *_QUICK) == 3
    assert (tmp_path / "secret").is_file() and not (out / "a_warp.nii.gz").exists()
    assert read_manifests(out)["a"]["status"] == "failed"


@pytest.mark.parametrize("name", ["../{id}.nii.gz", "{id}/../../x.nii.gz", "/tmp/{id}.nii.gz", "link/{id}.nii.gz"])
def test_names_stay_in_the_folder(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, pairs = tmp_path / "out", table(tmp_path, "a")
    out.mkdir()
    (out / "link").symlink_to(tmp_path)
    words = ("register", "--pairs", pairs, "--out", out, *_QUICK)
    assert "is no name in --out" in refused(capsys, *words, "--warp", name)
    assert "is no name in --out" in refused(capsys, *words, "--prefix", name)


def test_ids_and_folders_that_cannot_be_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = table(tmp_path, "a")
    words = ("register", "--pairs", pairs, *_QUICK)
    assert "is a file; a folder is needed" in refused(capsys, *words, "--out", pairs)
    assert "is a file; a folder is needed" in refused(capsys, *words, "--out", pairs / "below")
    rows = tmp_path / "pairs.json"
    for name in ("a\0b", "a\nb", "\x1b[31mred"):
        rows.write_text(json.dumps([{"id": name, "moving": "pair/moving.nii.gz", "fixed": "pair/fixed.nii.gz"}]))
        line = refused(capsys, "register", "--pairs", rows, *_QUICK, "--out", tmp_path / "o")
        assert "control character" in line and line.isprintable()
    rows.write_text(json.dumps([{"id": "..", "moving": "pair/moving.nii.gz", "fixed": "pair/fixed.nii.gz"}]))
    line = refused(capsys, "register", "--pairs", rows, *_QUICK, "--out", tmp_path / "o", "--warp", "{id}/w.nii.gz")
    assert "is no name in --out" in line
