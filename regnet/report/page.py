"""The frame of a page: one file, with its style and scripts in it, that may fetch nothing."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

_ASSETS = Path(__file__).parent / "assets"
# What a browser may load for the page: what is in it.
_POLICY = (
    "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; script-src 'unsafe-inline' blob:; "
    "connect-src data: blob:; font-src data:; worker-src blob:"
)


def page(title: str, body: str, scripts: Sequence[str] = (), style: str = "") -> str:
    """An HTML page.

    Args:
        title: plain text.
        body: HTML.
        scripts: names of files in ``assets``, run in this order when the page is there.
        style: CSS besides that of all pages.
    """
    code = "".join(f"<script>{asset(name)}</script>" for name in scripts)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{asset('page.css')}{style}</style></head>"
        f"<body>{body}{code}</body></html>\n"
    )


def asset(name: str) -> str:
    """The text of a file in ``assets``."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are HTML already; the first of each row names it."""
    top = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    lines = (
        f'<tr><th scope="row">{row[0]}</th>' + "".join(f"<td>{cell}</td>" for cell in row[1:]) + "</tr>" for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def fold(title: str, content: str) -> str:
    """Something that is opened by a click on its title."""
    return f"<details><summary>{escape(title)}</summary>{content}</details>"


def settings(values: dict[str, object]) -> str:
    """Names and values, one a line."""
    lines = (f"<dt>{escape(str(key))}</dt><dd>{escape(_plain(value))}</dd>" for key, value in values.items())
    return f"<dl>{''.join(lines)}</dl>"


def _plain(value: object) -> str:
    if value is None or value == [] or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
