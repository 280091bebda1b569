"""Means of rows and the table for people."""

import math

from rich.console import Console

from regnet.report import compare, comparison_table, summary_table

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


def test_the_table_shows_rows_dashes_and_the_mean() -> None:
    lines = _text("three", {"dice": ("Dice", ".3f"), "hd": ("HD95", ".1f")}, ROWS).splitlines()
    assert ["a", "0.500", "2.0"] in [line.split() for line in lines]
    assert ["b", "0.750", "-"] in [line.split() for line in lines]
    assert [line.split() for line in lines[-4:-1]] == [
        ["mean", "0.750", "2.0"],
        ["95", "%", "from", "0.500", "2.0"],
        ["to", "1.000", "2.0"],
    ]


def test_a_comparison_shows_both_runs_their_difference_and_its_p() -> None:
    better = [{**row, "dice": float(row["dice"]) + 0.25} for row in ROWS]
    table = comparison_table("two runs", {"dice": ("Dice", ".3f"), "x": ("X", ".1f")}, compare(better, ROWS, ["dice"]))
    console = Console(width=80)
    with console.capture() as capture:
        console.print(table)
    # all three signs agree: 2 of the 8 equally likely ways are as extreme
    assert ["Dice", "1.000", "0.750", "0.250", "0.250", "0.250", "0.25", "3"] in [
        line.split() for line in capture.get().splitlines()
    ]


def test_a_long_table_is_cut_and_one_row_has_no_mean() -> None:
    many = [{"id": str(number), "dice": 0.5} for number in range(30)]
    text = _text("many", {"dice": ("Dice", ".3f")}, many, limit=4)
    assert "26 more" in text and "mean" in text
    assert "mean" not in _text("one", {"dice": ("Dice", ".3f")}, ROWS[:1])
