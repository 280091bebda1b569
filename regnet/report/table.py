"""From rows of numbers to means and a table for people."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from rich import box
from rich.table import Table

Row = Mapping[str, str | float]


def summarise(rows: Sequence[Row]) -> dict[str, dict[str, float | int | None]]:
    """Mean, standard deviation, smallest and largest of every column of numbers.

    Args:
        rows: cells by column; text, blanks and numbers that are not finite are passed over.

    Returns:
        column -> ``mean``, ``std`` (population), ``min``, ``max`` and ``n``, the count of numbers; None where n is 0.
    """
    columns = dict.fromkeys(name for row in rows for name, cell in row.items() if isinstance(cell, float))
    summary: dict[str, dict[str, float | int | None]] = {}
    for name in columns:
        cells = [row.get(name) for row in rows]
        values = np.array([cell for cell in cells if isinstance(cell, float) and math.isfinite(cell)])
        figures = {key: float(getattr(values, key)()) if values.size else None for key in ("mean", "std", "min", "max")}
        summary[name] = {**figures, "n": int(values.size)}
    return summary


def summary_table(
    title: str, columns: Mapping[str, tuple[str, str]], rows: Sequence[Row], name: str = "id", limit: int = 20
) -> Table:
    """A table of the first rows and, for two rows and more, the mean of all.

    Args:
        title: above the table.
        columns: column -> its header and the format of its numbers, e.g. ``".3f"``; in order.
        rows: cells by column.
        name: the column that names a row; text.
        limit: how many rows to show.

    Returns:
        A rich table; a cell without a number is a dash.
    """
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, title_style="bold")
    table.add_column(name)
    for header, _ in columns.values():
        table.add_column(header, justify="right", no_wrap=True)
    for row in rows[:limit]:
        table.add_row(str(row.get(name, "")), *(_cell(row.get(column), form) for column, (_, form) in columns.items()))
    if len(rows) > limit:
        table.add_row(f"… {len(rows) - limit} more", *[""] * len(columns))
    if len(rows) > 1:
        summary = summarise(rows)
        means = [_cell(summary.get(column, {}).get("mean"), form) for column, (_, form) in columns.items()]
        table.add_section()
        table.add_row("mean", *means, style="bold")
    return table


def _cell(value: str | float | None, form: str) -> str:
    if isinstance(value, str) or value is None or not math.isfinite(value):
        return "-"
    return format(value, form)
