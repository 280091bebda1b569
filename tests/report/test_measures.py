"""Figures on their way to files and back."""

import json
import math
from pathlib import Path

import pytest

from regnet.errors import InputError
from regnet.report.measures import Measure, from_json, read_rows, to_json, to_row, write_json, write_rows

MEASURES = {
    "dice": Measure(0.5, labels={1: 0.25, 30: 0.75, 4: math.nan}),
    "tre_mm": Measure(2.0, points=[1.0, 3.0]),
    "sdlogj": Measure(math.nan),
}


def test_a_row_has_the_figures_and_those_of_the_labels() -> None:
    row = to_row("ann", MEASURES)
    assert list(row) == ["id", "dice", "dice_1", "dice_30", "dice_4", "tre_mm", "sdlogj"]
    assert row["dice_30"] == 0.75 and row["id"] == "ann"


def test_json_is_laid_out_as_learn2reg_s_and_comes_back_the_same(tmp_path: Path) -> None:
    content = to_json(MEASURES)
    assert content["dice"] == {"mean": 0.5, "detailed": {"1": 0.25, "30": 0.75, "4": None}}
    assert content["tre_mm"] == {"mean": 2.0, "detailed": [1.0, 3.0]}
    assert content["sdlogj"] == {"mean": None, "detailed": None}
    write_json(tmp_path / "a.json", content)
    back = from_json(json.loads((tmp_path / "a.json").read_text("utf-8")))
    assert to_json(back) == content
    assert math.isnan(back["dice"].labels[4]) and math.isnan(back["sdlogj"].mean)


def test_rows_come_back_without_their_blanks(tmp_path: Path) -> None:
    rows = [to_row("ann", MEASURES), {"id": "bob, jr", "extra": 1.0}]
    write_rows(tmp_path / "cases.csv", rows)
    assert read_rows(tmp_path / "cases.csv") == [
        {"id": "ann", "dice": 0.5, "dice_1": 0.25, "dice_30": 0.75, "tre_mm": 2.0},
        {"id": "bob, jr", "extra": 1.0},
    ]


@pytest.mark.parametrize("text", ["", "name,dice\na,1\n", "id,dice\na,much\n", "id,dice\n,1\n", "\x00\xff"])
def test_a_file_that_is_no_table_of_cases_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "cases.csv").write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=r"cases\.csv: not a table"):
        read_rows(tmp_path / "cases.csv")
    with pytest.raises(InputError, match="cannot be read"):
        read_rows(tmp_path / "missing.csv")
