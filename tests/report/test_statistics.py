"""Means, intervals and tests of runs whose figures can be worked out."""

import math

import numpy as np
import pytest

from regnet.report import bootstrap, compare, summarise

ROWS = [
    {"id": "a", "dice": 0.5, "hd": 2.0},
    {"id": "b", "dice": 0.75, "hd": math.nan},
    {"id": "c", "dice": 1.0},
]


def test_the_summary_passes_over_text_blanks_and_nan() -> None:
    summary = summarise(ROWS)
    assert summary.keys() == {"dice", "hd"}
    # the 30 % quantile of three lies 0.6 of the way from the first to the second
    dice = {"mean": 0.75, "std": (1 / 24) ** 0.5, "30": 0.65, "min": 0.5, "max": 1, "low": 0.5, "high": 1, "n": 3}
    assert summary["dice"] == pytest.approx(dice)
    assert summary["hd"] == {"mean": 2, "std": 0, "30": 2, "min": 2, "max": 2, "low": 2, "high": 2, "n": 1}
    empty = summarise([{"x": math.nan}])["x"]
    assert empty.pop("n") == 0 and set(empty.values()) == {None}


def test_the_interval_of_many_cases_is_that_of_the_normal_distribution() -> None:
    values = np.random.default_rng(1).normal(3, 2, 4000)
    low, high = bootstrap(values)
    half = 1.96 * values.std() / 4000**0.5
    assert low == pytest.approx(values.mean() - half, abs=0.05 * half)
    assert high == pytest.approx(values.mean() + half, abs=0.05 * half)
    assert bootstrap(values) == (low, high)  # the same numbers every time
    narrow = bootstrap(values, 0.5)
    assert low < narrow[0] < narrow[1] < high


def test_the_interval_holds_the_true_mean_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(2)
    held = 0
    for _ in range(100):
        low, high = bootstrap(generator.exponential(1, 40))
        held += low <= 1 <= high
    assert 85 <= held <= 100


def test_two_runs_are_compared_case_by_case() -> None:
    ours = [{"id": str(n), "dice": 0.5 + 0.01 * n} for n in range(8)] + [{"id": "only ours", "dice": 9.0}]
    theirs = [{"id": str(n), "dice": 0.5} for n in reversed(range(8))] + [{"id": "only theirs", "dice": 9.0}]
    found = compare(ours, theirs, ["dice", "hd95_mm"])
    assert found.keys() == {"dice"}
    # of 8 differences one is 0; the other seven all have one sign: 2 of 2⁷ equally likely ways
    assert found["dice"]["p"] == pytest.approx(2 / 2**7)
    assert found["dice"]["n"] == 8 and found["dice"]["difference"] == pytest.approx(0.035)
    assert found["dice"]["low"] <= 0.035 <= found["dice"]["high"]
    assert found["dice"]["ours"] == pytest.approx(0.535) and found["dice"]["theirs"] == pytest.approx(0.5)


def test_a_run_against_itself_does_not_differ() -> None:
    found = compare(ROWS, ROWS, ["dice", "hd"])
    assert found["dice"]["p"] == 1 and found["dice"]["difference"] == 0 and found["hd"]["n"] == 1
