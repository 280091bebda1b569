"""``regnet report`` of a transform and of a cohort."""

from pathlib import Path

import pytest
import torch

from regnet import __version__
from regnet.cli import report_cohort
from regnet.data.table import Pair
from regnet.inference.manifest import describe_inputs, describe_outputs, write_manifest
from regnet.inference.registered import case_of, describe_pair
from regnet.io import read_image, write_image, write_transform
from regnet.spatial import Displacement

from .command import refused, regnet, write_pair


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process; tests/inference/test_engine.py has the others."""

    def here(work, items, jobs=1):  # type: ignore[no-untyped-def]
        for number, item in enumerate(items):
            try:
                yield number, work(item)
            except Exception as error:
                yield number, error

    monkeypatch.setattr(report_cohort, "run_each", here)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """Two small heads, and what is bright of them."""
    moving, fixed, labels = write_pair(tmp_path)
    target = tmp_path / "target.nii.gz"
    for source, made in ((moving, labels), (fixed, target)):
        image = read_image(source)
        write_image(made, (image.data[0] > image.data.mean()).to(torch.int16), image)
    return Pair("ann", (moving,), (fixed,), labels, target)


def warp(folder: Path, pair: Pair, by: float, name: str = "warp.nii.gz") -> Path:
    fixed = read_image(pair.fixed[0])
    write_transform(folder / name, Displacement(torch.full((3, *fixed.grid.shape), by), fixed.grid), fixed)
    return folder / name


def cohort(folder: Path, pair: Pair) -> Path:
    """One pair that is done, one that failed, and one whose map is gone."""
    out = folder / "cohort"
    for name, status, error in (("ann", "done", ""), ("bob", "failed", "no <image>"), ("eve", "done", "")):
        files = {"warp": f"{name}_warp.nii.gz"}
        made = warp(out, pair, 0.5, files["warp"]) if name == "ann" else None
        manifest = {
            **{"id": name, "status": status, "error": error, "warnings": ["odd header"], "seconds": 1.5, "told": []},
            **{"version": __version__, "settings": {"refine": 3, "files": files}},
            "inputs": describe_inputs([*pair.moving, *pair.fixed]),
            "outputs": describe_outputs([made], out) if made else {},
            "pair": describe_pair(pair) | {"id": name},
        }
        write_manifest(out / "manifests" / f"{name}.json", manifest)
    return out


def test_a_row_of_a_table_comes_back_from_its_manifest(tmp_path: Path, pair: Pair) -> None:
    made = warp(tmp_path, pair, 0.5)
    back = warp(tmp_path, pair, -0.5, "back.nii.gz")
    names = {"warp": made.name, "inverse_warp": back.name}
    case = case_of({"id": "ann", "pair": describe_pair(pair), "settings": {"files": names}}, tmp_path)
    assert (case.pair, case.transforms, case.inverse) == (pair, (made,), back)


def test_the_report_of_a_transform_is_one_page_and_replaces_nothing(
    tmp_path: Path, pair: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    made = warp(tmp_path, pair, 0.5)
    words = ("report", made, "--moving", *pair.moving, "--fixed", *pair.fixed)
    labels = ("--moving-labels", pair.moving_labels, "--fixed-labels", pair.fixed_labels, "--mask", pair.fixed_labels)
    assert regnet(*words, *labels, "--inverse", made) == 0
    told = capsys.readouterr().out
    assert "No voxel folds" in told and str(tmp_path / "warp.html") in told and "where it began" in told
    text = (tmp_path / "warp.html").read_text(encoding="utf-8")
    assert "Dice" in text and str(made.resolve()) in text and __version__ in text
    assert "exists already" in refused(capsys, *words)
    assert "give --moving and --fixed" in refused(capsys, "report", made)
    assert "belong together" in refused(capsys, *words, *labels[:2], "--overwrite")
    assert (tmp_path / "warp.html").read_text(encoding="utf-8") == text
    assert ".html" in refused(capsys, *words, "--out", tmp_path / "page.pdf")
    assert "no such file" in refused(capsys, "report", tmp_path / "none.nii.gz")


def test_the_report_of_a_cohort_is_an_index_and_a_page_for_each_pair_that_can_be_shown(
    tmp_path: Path, pair: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    out = cohort(tmp_path, pair)
    assert regnet("report", out) == 0
    told = capsys.readouterr()
    assert "2 of 3 pairs are done, 1 failed" in told.out and "eve_warp.nii.gz: is not there any more" in told.err
    made = {path.relative_to(out / "report").as_posix() for path in (out / "report").rglob("*.*")}
    assert made == {"index.html", "pairs/ann.html"}
    index = (out / "report/index.html").read_text(encoding="utf-8")
    assert "no &lt;image&gt;" in index and 'href="pairs/ann.html"' in index and "no page: " in index
    page = (out / "report/pairs/ann.html").read_text(encoding="utf-8")
    assert "odd header" in page and "has changed since" not in page

    assert "exists already" in refused(capsys, "report", out)
    moving = read_image(pair.moving[0])
    write_image(pair.moving[0], moving.data + 1, moving)
    assert regnet("report", out, "--overwrite", "--out", tmp_path / "pages") == 0
    assert "has changed since" in (tmp_path / "pages/pairs/ann.html").read_text(encoding="utf-8")


def test_a_folder_that_holds_nothing_to_report_of_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    assert "manifests" in refused(capsys, "report", tmp_path / "empty")
    assert "is a folder" in refused(capsys, "report", tmp_path / "empty", "warp.nii.gz")


def test_the_report_of_a_run_is_told_from_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.yaml").write_text("name: study\n", encoding="utf-8")
    assert "metrics.csv" in refused(capsys, "report", tmp_path)
    (tmp_path / "csv" / "version_0").mkdir(parents=True)
    (tmp_path / "csv/version_0/metrics.csv").write_text("epoch,step,val/loss\n0,1,0.5\n", encoding="utf-8")
    assert regnet("report", tmp_path) == 0
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "has not ended yet" in text and "name: study" in text and f"--resume {tmp_path}" in text
    assert "exists already" in refused(capsys, "report", tmp_path)
