"""What was measured of many cases: as rows of a table, and as the files that ``regnet evaluate`` writes."""

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regnet.errors import InputError
from regnet.io import atomic_path

Row = dict[str, str | float]


@dataclass(frozen=True)
class Measure:
    """One figure of one case.

    Attributes:
        mean: the figure; NaN where there is none.
        labels: the figure of each label, where it is a mean over labels.
        points: the figure of each landmark, in the order of its file, where it is a mean over landmarks.
    """

    mean: float
    labels: Mapping[int, float] = field(default_factory=dict)
    points: Sequence[float] = ()


Measures = dict[str, Measure]
"""By name: the columns of the table."""


def to_row(case: str, measures: Measures) -> Row:
    """A row of the table: the figures, and after each those of its labels as ``name_label``."""
    row: Row = {"id": case}
    for name, measure in measures.items():
        row[name] = measure.mean
        row |= {f"{name}_{label}": value for label, value in measure.labels.items()}
    return row


def to_json(measures: Measures) -> dict[str, Any]:
    """As in a case of Learn2Reg's results: ``mean`` and ``detailed``; what is not a number is null.

    ``detailed`` is the figure itself, those of the landmarks in a list, or those of the labels by label (Learn2Reg has
    a list there too, in the order of its configuration).
    """
    return {
        name: {
            "mean": _number(measure.mean),
            "detailed": [_number(value) for value in measure.points]
            if measure.points
            else {str(label): _number(value) for label, value in measure.labels.items()} or _number(measure.mean),
        }
        for name, measure in measures.items()
    }


def from_json(content: Mapping[str, Any]) -> Measures:
    """The inverse of :func:`to_json`."""
    measures = {}
    for name, entry in content.items():
        detailed = entry["detailed"]
        measures[name] = Measure(
            _float(entry["mean"]),
            {int(label): _float(value) for label, value in detailed.items()} if isinstance(detailed, dict) else {},
            [_float(value) for value in detailed] if isinstance(detailed, list) else (),
        )
    return measures


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write a CSV table, whole or not at all; what is not a number is blank.

    Raises:
        InputError: it cannot be written.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    with atomic_path(path, overwrite=True) as temporary, temporary.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(names)
        writer.writerows([[_cell(row.get(name, "")) for name in names] for row in rows])


def read_rows(path: Path) -> list[Row]:
    """Read a table of :func:`write_rows`: ``id`` is text, blank cells are left out.

    Raises:
        InputError: it cannot be read, has no column ``id``, or holds something that is not a number.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            lines = list(csv.DictReader(stream))
        if not lines or not all(line.get("id") for line in lines):
            raise InputError(f"{path}: not a table of cases; cases.csv of `regnet evaluate --out` is needed")
        return [
            {name: cell if name == "id" else float(cell) for name, cell in line.items() if name and cell}
            for line in lines
        ]
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (UnicodeDecodeError, csv.Error, ValueError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: not a table of numbers by case ({error})") from error


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file, whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    with atomic_path(path, overwrite=True) as temporary:
        temporary.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _float(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _cell(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.6g}" if math.isfinite(value) else ""
