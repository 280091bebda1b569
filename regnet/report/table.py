"""Tables for people."""

import math
from collections.abc import Mapping, Sequence

from rich import box
from rich.table import Table

from regnet.report.statistics import Row, Summary, summarise


def summary_table(
    title: str, columns: Mapping[str, tuple[str, str]], rows: Sequence[Row], name: str = "id", limit: int = 20
) -> Table:
    """A table of the first rows and, for two rows and more, the mean of all and its 95 % interval.

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
        table.add_section()
        for key, title, style in (("mean", "mean", "bold"), ("low", "95 % from", ""), ("high", "to", "")):
            cells = [_cell(summary.get(column, {}).get(key), form) for column, (_, form) in columns.items()]
            table.add_row(title, *cells, style=style)
    return table


def comparison_table(title: str, columns: Mapping[str, tuple[str, str]], found: Mapping[str, Summary]) -> Table:
    """A table of what :func:`regnet.report.compare` found; ``columns`` as in :func:`summary_table`."""
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, title_style="bold")
    table.add_column("")
    for header in ("ours", "theirs", "difference", "95 % from", "to", "p", "n"):
        table.add_column(header, justify="right", no_wrap=True)
    for column, (header, form) in columns.items():
        if column in found:
            figures = found[column]
            cells = [_cell(figures[key], form) for key in ("ours", "theirs", "difference", "low", "high")]
            table.add_row(header.replace("\n", " "), *cells, _cell(figures["p"], ".2g"), str(figures["n"]))
    return table


def _cell(value: str | float | None, form: str) -> str:
    if isinstance(value, str) or value is None or not math.isfinite(value):
        return "-"
    return format(value, form)
