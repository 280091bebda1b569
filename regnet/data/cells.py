"""Cells of a table in a file: CSV, or JSON with an object a row."""

import csv
import json
import logging
from collections.abc import Collection
from pathlib import Path
from typing import Any

from regnet.errors import InputError

_log = logging.getLogger(__name__)


def read_cells(path: Path, known: Collection[str]) -> tuple[list[str], list[list[str]], list[int]]:
    """Read a table.

    Args:
        path: ``.json``: a list of objects, or ``{"pairs": [...]}``; anything else is CSV in UTF-8.
        known: columns that are used; others are named in the log.

    Returns:
        The header, the cells of every row that is not blank, stripped, as many as the header has, and the line (in
        JSON: the number) of each.

    Raises:
        InputError: the file cannot be read, is empty, or its rows and header do not fit.
    """
    try:
        header, rows, lines = _read_json(path) if path.suffix.lower() == ".json" else _read_csv(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: not a CSV table in UTF-8 ({error})") from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not a JSON file ({error})") from error
    repeated = sorted({name for name in header if name and header.count(name) > 1})
    if repeated:
        raise InputError(f"{path}: column {', '.join(repeated)} comes twice")
    if not header:
        raise InputError(f"{path}: is empty")
    if not rows:
        raise InputError(f"{path}: has no rows")
    unknown = [name for name in header if name and name not in known]
    if unknown:
        _log.warning("%s: columns kept but not used: %s", path, ", ".join(unknown))
    return header, rows, lines


def _read_csv(path: Path) -> tuple[list[str], list[list[str]], list[int]]:
    rows, lines = [], []
    # utf-8-sig: spreadsheets put a byte-order mark before the first column's name
    with path.open(newline="", encoding="utf-8-sig") as stream:
        reader = csv.reader(stream)
        header = [name.strip() for name in next(reader, [])]
        for found in reader:
            cells = [cell.strip() for cell in found]
            if not any(cells):
                continue
            if len(cells) > len(header):
                raise InputError(f"{path} line {reader.line_num}: {len(cells)} cells, but the header has {len(header)}")
            rows.append(cells + [""] * (len(header) - len(cells)))
            lines.append(reader.line_num)
    return header, rows, lines


def _read_json(path: Path) -> tuple[list[str], list[list[str]], list[int]]:
    content = json.loads(path.read_text(encoding="utf-8-sig"))
    if isinstance(content, dict):
        content = content.get("pairs")
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
        raise InputError(f"{path}: a list of objects, one a row, is expected, or an object with such a list, 'pairs'")
    header = list(dict.fromkeys(str(key) for row in content for key in row))
    return header, [[_cell(row.get(key)) for key in header] for row in content], list(range(1, len(content) + 1))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return ";".join(map(str, value)) if isinstance(value, list) else str(value).strip()
