"""The page of a training run."""

from pathlib import Path

import pytest
import torch
from torch.utils.tensorboard import SummaryWriter

from regnet.cli.report_run import _commands
from regnet.errors import InputError
from regnet.report.log import read_log, read_panels
from regnet.report.run_page import run_page

from .test_pages import checked

_HEAD = "epoch,step,step/loss,train/loss,train/lr,train/similarity,train/weighted/similarity,val/dice,val/loss\n"
# Two epochs of two steps; the second epoch was begun, cut off, and done again in the next file.
_FIRST = "0,0,0.9,,,,,,\n0,1,0.8,,,,,,\n0,1,,,,,,0.5,0.7\n0,1,,0.85,0.01,0.85,0.85,,\n1,2,0.6,,,,,,\n"
_SECOND = "1,2,0.5,,,,,,\n1,3,0.4,,,,,,\n1,3,,,,,,0.75,0.35\n1,3,,0.45,0.005,0.45,0.45,,\n"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for number, text in enumerate((_FIRST, _SECOND)):
        folder = tmp_path / "run" / "csv" / f"version_{number}"
        folder.mkdir(parents=True)
        (folder / "metrics.csv").write_text(_HEAD + text, encoding="utf-8")
    with SummaryWriter(str(tmp_path / "run" / "tensorboard")) as writer:
        for step in (2, 3, 4):
            writer.add_image("val/panels", torch.full((3, 8, 16), step / 4), step)
    return tmp_path / "run"


def test_curves_run_over_all_parts_of_a_run_and_what_was_done_twice_counts_once(run: Path) -> None:
    log = read_log(run)
    assert log.curves["step/loss"] == ((0.5, 1.0, 1.5, 2.0), (0.9, 0.8, 0.5, 0.4))
    assert log.curves["val/dice"] == ((1.0, 2.0), (0.5, 0.75))
    assert (log.terms(), log.measures()) == (["similarity"], ["dice"])


def test_the_page_holds_curves_pictures_settings_and_how_to_make_it_again(run: Path) -> None:
    (run / ".hydra").mkdir()
    (run / ".hydra" / "overrides.yaml").write_text("- experiment=smoke\n- hydra.run.dir=x\n", encoding="utf-8")
    panels = read_panels(run)
    assert [step for step, _ in panels] == [2, 4]
    text = run_page(
        "run",
        read_log(run),
        panels,
        {"val/dice": 0.75, "seconds": 12.0},
        "seed: <0>\n",
        {"torch": "2.4.1"},
        _commands(run),
    )
    checked(text)
    for said in ("2 epochs · ended · 12 s", "learning rate", "dice", "seed: &lt;0&gt;", "2.4.1", "step 4"):
        assert said in text
    assert "regnet train experiment=smoke hydra.run.dir=NEW" in text and text.count("data:image/jpeg") == 2


def test_a_run_without_a_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"metrics\.csv"):
        read_log(tmp_path)
    (tmp_path / "csv" / "version_0").mkdir(parents=True)
    (tmp_path / "csv" / "version_0" / "metrics.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(InputError, match="epoch and step"):
        read_log(tmp_path)
    assert read_panels(tmp_path) == []
