"""The page of many pairs: a table to sort, with a picture of each and the reason of those that failed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from statistics import fmean

from regnet.report.figures import FIGURES
from regnet.report.page import page
from regnet.report.remarks import Remark

_SHOWN = ("dice", "hd95_mm", "tre_mm", "lncc", "displacement_max_mm", "folding_percent", "sdlogj", "inverse_mean_mm")
_ORDER = {"failed": 0, "running": 1, "done": 2}


@dataclass(frozen=True)
class Entry:
    """A pair of the table.

    Attributes:
        status: ``done``, ``failed`` or ``running``.
        error: why it failed, or why it has no page.
        link: its page, relative to this one.
        picture: a data URI.
        figures: as ``regnet evaluate`` has them.
    """

    name: str
    status: str
    seconds: float = math.nan
    error: str = ""
    link: str = ""
    picture: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
    remarks: Sequence[Remark] = ()


def cohort_page(title: str, entries: Sequence[Entry], facts: Sequence[str], meaning: Mapping[str, str]) -> str:
    """One HTML file: failed pairs first, then in the order given.

    Args:
        title: of the page.
        entries: the pairs.
        facts: what is to be said of all, such as the version.
        meaning: what each figure is.
    """
    counts = {status: sum(each.status == status for each in entries) for status in _ORDER}
    said = ", ".join(f"{count} {status}" for status, count in reversed(counts.items()) if count)
    names = [name for name in _SHOWN if any(math.isfinite(each.figures.get(name, math.nan)) for each in entries)]
    body = (
        f'<main><h1>{escape(title)}</h1><p class="sub">{escape(" · ".join([f"{len(entries)} pairs: {said}", *facts]))}'
        f"</p>{_table(sorted(entries, key=lambda each: _ORDER[each.status]), names, meaning)}</main>"
    )
    return page(title, body, ["sort.js"])


def _table(entries: Sequence[Entry], names: Sequence[str], meaning: Mapping[str, str]) -> str:
    head = [("pair", ""), ("", ""), ("status", ""), ("seconds", "of its registration")]
    head += [(FIGURES[name][0], meaning.get(name, "")) for name in names] + [("remarks", "")]
    top = "".join(
        f'<th scope="col" aria-sort="none"><button type="button" title="{escape(told)}">{escape(name)}</button></th>'
        if name
        else "<th></th>"
        for name, told in head
    )
    rows = "".join(_row(entry, names) for entry in entries)
    columns = {name: [entry.figures.get(name, math.nan) for entry in entries] for name in names}
    means = "".join(f"<td>{_mean(values, FIGURES[name][1])}</td>" for name, values in columns.items())
    spent = _mean([entry.seconds for entry in entries if entry.status == "done"], 1)
    foot = f'<tr><th scope="row">mean</th><td></td><td></td><td>{spent}</td>{means}<td></td></tr>'
    return (
        f'<div class="wide"><table class="cohort"><thead><tr>{top}</tr></thead><tbody>{rows}</tbody>'
        f"<tfoot>{foot}</tfoot></table></div>"
    )


def _row(entry: Entry, names: Sequence[str]) -> str:
    name = escape(entry.name)
    linked = f'<a href="{escape(entry.link)}">{name}</a>' if entry.link else name
    picture = f'<img src="{entry.picture}" alt="fixed and moved image" height="48">' if entry.picture else ""
    cells = "".join(
        f'<td data-value="{entry.figures.get(each, math.nan)}">'
        f"{_number(entry.figures.get(each, math.nan), FIGURES[each][1])}</td>"
        for each in names
    )
    warnings = [each.text for each in entry.remarks if each.kind == "warning"]
    told = f'{cells}<td class="told" data-value="{len(warnings)}">{escape(" ".join(warnings))}</td>'
    if entry.error:
        told = f'<td class="told" colspan="{len(names) + 1}">{escape(entry.error)}</td>'
    return (
        f'<tr class="{entry.status}"><th scope="row" data-value="{name}">{linked}</th><td>{picture}</td>'
        f'<td data-value="{entry.status}"><span class="status">{entry.status}</span></td>'
        f'<td data-value="{entry.seconds}">{_number(entry.seconds, 1)}</td>{told}</tr>'
    )


def _mean(values: Sequence[float], digits: int) -> str:
    found = [value for value in values if math.isfinite(value)]
    return _number(fmean(found), digits) if found else ""


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else ""
