"""What many cases say together, and whether two runs differ."""

import functools
import math
from collections.abc import Mapping, Sequence

import numpy as np

_RESAMPLES, _FEWEST = 5000, 500
_NUMBERS = 1 << 22  # weights at most: more cases, fewer resamples

Row = Mapping[str, str | float]
Summary = dict[str, float | int | None]


def summarise(rows: Sequence[Row]) -> dict[str, Summary]:
    """What there is to say of every column of numbers.

    Args:
        rows: cells by column; text, blanks and numbers that are not finite are passed over.

    Returns:
        column -> ``mean``, ``std`` (population), ``30`` (the 30 % quantile: these three as in Learn2Reg), ``min``,
        ``max``, ``low`` and ``high`` (95 % confidence interval of the mean, :func:`bootstrap`) and ``n``, the count of
        numbers; None where n is 0.
    """
    columns = dict.fromkeys(name for row in rows for name, cell in row.items() if isinstance(cell, float))
    return {name: _summary(np.array(list(numbers(rows, name).values()))) for name in columns}


def numbers(rows: Sequence[Row], column: str) -> dict[int, float]:
    """The finite numbers of a column by the index of their row."""
    cells = {index: row.get(column) for index, row in enumerate(rows)}
    return {index: cell for index, cell in cells.items() if isinstance(cell, float) and math.isfinite(cell)}


def _summary(values: np.ndarray) -> Summary:
    keys = ("mean", "std", "30", "min", "max", "low", "high")
    if not values.size:
        return {**dict.fromkeys(keys), "n": 0}
    figures = (values.mean(), values.std(), np.quantile(values, 0.3), values.min(), values.max(), *bootstrap(values))
    return {**dict(zip(keys, map(float, figures), strict=True)), "n": int(values.size)}


def bootstrap(values: np.ndarray, confidence: float = 0.95) -> tuple[float, float]:
    """Confidence interval of the mean: percentiles of the means of cases drawn with replacement, with a fixed seed.

    Args:
        values: one number a case, at least one. Of a few cases the interval is too narrow.
        confidence: how much of the means it holds.

    Source:
        Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13.
    """
    if values.size == 1 or values.min() == values.max():
        return float(values.mean()), float(values.mean())
    means = _weights(values.size) @ values
    low, high = np.quantile(means, ((1 - confidence) / 2, (1 + confidence) / 2))
    return float(low), float(high)


@functools.lru_cache(maxsize=8)
def _weights(cases: int) -> np.ndarray:
    """How often each case is drawn, over the number of cases; one row a resample."""
    resamples = max(_FEWEST, min(_RESAMPLES, _NUMBERS // cases))
    return np.random.default_rng(0).multinomial(cases, np.full(cases, 1 / cases), resamples) / cases


def compare(ours: Sequence[Row], theirs: Sequence[Row], columns: Sequence[str]) -> dict[str, Summary]:
    """Paired comparison of two runs, case by case.

    Args:
        ours, theirs: rows with the text ``id``; only cases that both have, with finite numbers in both, count.
        columns: which columns; those without such a case are left out.

    Returns:
        column -> ``ours`` and ``theirs`` (means over the common cases), ``difference`` (mean of ours less theirs) with
        ``low`` and ``high`` (its 95 % interval, :func:`bootstrap`), ``p`` (Wilcoxon's signed-rank test, two-sided;
        1 where no case differs) and ``n``. The p of many columns are not corrected for their number.

    Source:
        Wilcoxon, Biometrics Bulletin 1945.
    """
    from scipy import stats  # takes half a second to load, and few need it

    other = {row["id"]: row for row in theirs}
    result: dict[str, Summary] = {}
    for column in columns:
        both = [
            (mine, cell)
            for index, mine in numbers(ours, column).items()
            if isinstance(cell := other.get(ours[index]["id"], {}).get(column), float) and math.isfinite(cell)
        ]
        if not both:
            continue
        one, two = np.array(both).T
        difference = one - two
        low, high = bootstrap(difference)
        changed = difference[difference != 0]
        result[column] = {
            "ours": float(one.mean()),
            "theirs": float(two.mean()),
            "difference": float(difference.mean()),
            "low": low,
            "high": high,
            "p": float(stats.wilcoxon(changed).pvalue) if changed.size else 1.0,
            "n": len(both),
        }
    return result
