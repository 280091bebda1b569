"""Means of rows and the table for people."""

import math

import pytest
from rich.console import Console

from regnet.report import summarise, summary_table

ROWS = [
    {"id": "a", "dice": 0.5, "hd": 2.0},
    {"id": "b", "dice": 0.75, "hd": math.nan},
    {"id": "c", "dice": 1.0},
]


def _text(*args: object, **options: object) -> str:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(summary_table(*args, **options))  # type: ignore[arg-type]
    return capture.get()


def test_the_summary_passes_over_text_blanks_and_nan() -> None:
    summary = summarise(ROWS)
    assert summary.keys() == {"dice", "hd"}
    assert summary["dice"] == pytest.approx({"mean": 0.75, "std": (1 / 24) ** 0.5, "min": 0.5, "max": 1, "n": 3})
    assert summary["hd"] == {"mean": 2, "std": 0, "min": 2, "max": 2, "n": 1}
    assert summarise([{"x": math.nan}])["x"] == {"mean": None, "std": None, "min": None, "max": None, "n": 0}


def test_the_table_shows_rows_dashes_and_the_mean() -> None:
    lines = _text("three", {"dice": ("Dice", ".3f"), "hd": ("HD95", ".1f")}, ROWS).splitlines()
    assert ["a", "0.500", "2.0"] in [line.split() for line in lines]
    assert ["b", "0.750", "-"] in [line.split() for line in lines]
    assert lines[-2].split() == ["mean", "0.750", "2.0"]


def test_a_long_table_is_cut_and_one_row_has_no_mean() -> None:
    many = [{"id": str(number), "dice": 0.5} for number in range(30)]
    text = _text("many", {"dice": ("Dice", ".3f")}, many, limit=4)
    assert "26 more" in text and "mean" in text
    assert "mean" not in _text("one", {"dice": ("Dice", ".3f")}, ROWS[:1])
