"""Points in lines of text: CSV, plain numbers, Slicer's ``.fcsv``, FreeSurfer's ``.dat`` and ``.label``."""

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path

from regnet.errors import InputError

SUFFIXES = (".csv", ".tsv", ".txt", ".fcsv", ".dat", ".label")
_SLICER_SPACES = {"0": "ras", "1": "lps", "RAS": "ras", "LPS": "lps"}
_ANTS = ("x", "y", "z", "t")


@dataclass(frozen=True)
class Table:
    """Lines that hold points, and lines that are kept as they are.

    Args:
        lines: a text as it stands, or the cells of a point.
        columns: which cells are the coordinates.
        delimiter: between cells; None: blanks.
        space, usual: see :class:`regnet.io.points.Layout`.
    """

    lines: tuple[str | list[str], ...]
    columns: tuple[int, ...]
    delimiter: str | None
    space: str | None = None
    usual: str | None = None

    @property
    def coordinates(self) -> list[list[float]]:
        """The points, as the file has them."""
        return [[float(cells[k]) for k in self.columns] for cells in self.lines if not isinstance(cells, str)]

    def render(self, coordinates: list[list[float]]) -> str:
        """The text of the file with other points in their place; more points than there were get lines of their own."""
        rest = iter(coordinates)
        lines = [line if isinstance(line, str) else self._line(line, next(rest)) for line in self.lines]
        lines += [self._line([""] * (max(self.columns) + 1), point) for point in rest]
        return "\n".join(lines) + "\n"

    def _line(self, cells: list[str], point: list[float]) -> str:
        cells = list(cells)
        for column, value in zip(self.columns, point, strict=True):
            cells[column] = f"{value:.6f}"
        if self.delimiter is None:
            return " ".join(cells)
        out = io.StringIO()
        csv.writer(out, delimiter=self.delimiter, lineterminator="").writerow(cells)
        return out.getvalue()


def plain(ndim: int) -> Table:
    """A table of coordinates alone, with a header and no points yet."""
    return Table((",".join("xyz"[:ndim]),), tuple(range(ndim)), ",")


def parse(text: str, path: Path) -> Table:
    """Take a text apart; ``path`` is for its suffix and for messages.

    Raises:
        InputError: it holds something that is no point, or no point at all.
    """
    table = _parsed(text, path)
    if not table.coordinates:
        raise InputError(f"{path}: holds no points")
    return table


def _parsed(text: str, path: Path) -> Table:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{path}: not a file of points we know; use {', '.join(SUFFIXES)}, .json or .mrk.json")
    lines = text.splitlines()
    if suffix == ".fcsv":
        named = re.search(r"^#\s*columns\s*=\s*(.+)$", text, re.MULTILINE)
        header = named.group(1).split(",") if named else ["id", "x", "y", "z"]
        said = re.search(r"^#\s*CoordinateSystem\s*=\s*(\w+)", text, re.MULTILINE)
        if said and said.group(1) not in _SLICER_SPACES:
            raise InputError(f"{path}: its points are in {said.group(1)}; RAS or LPS is needed")
        space = _SLICER_SPACES[said.group(1)] if said else None
        return Table(_rows(lines, ",", _columns(header, path), path), _columns(header, path), ",", space)
    if suffix == ".dat":
        real = re.search(r"^useRealRAS\s+(\d)", text, re.MULTILINE)
        _check_scanner(real is None or real.group(1) == "1", path)
        return Table(_rows(lines, None, (0, 1, 2), path), (0, 1, 2), None, "ras" if real else None)
    if suffix == ".label":
        _check_scanner("vox2ras=scanner" in (lines or [""])[0].lower(), path)
        return Table(_rows(lines, None, (1, 2, 3), path), (1, 2, 3), None, "ras")
    return _free(lines, path)


def _free(lines: list[str], path: Path) -> Table:
    """A table whose first line may name the columns."""
    at, first = next(((k, line) for k, line in enumerate(lines) if _is_content(line)), (0, ""))
    delimiter = next((mark for mark in ",;\t" if mark in first), None)
    cells = [cell.strip() for cell in _cells(first, delimiter, path)]
    if not cells or _is_number(cells[0]):
        columns = tuple(range(min(3, len(cells)))) if len(cells) != 1 else ()
        if cells and not columns:
            raise InputError(f"{path}: line {at + 1} has 1 number; a point has 2 or 3")
        if len(cells) > 3 and _is_number(cells[3]):
            raise InputError(
                f"{path}: line {at + 1} has more numbers than a point; name the columns x, y and z above it"
            )
        return Table(_rows(lines, delimiter, columns or (0, 1, 2), path), columns or (0, 1, 2), delimiter)
    columns = _columns(cells, path)
    rows = (*lines[: at + 1], *_rows(lines[at + 1 :], delimiter, columns, path, at + 1))
    names = tuple(cell.lower() for cell in cells)
    return Table(rows, columns, delimiter, usual="lps" if names[:4] == _ANTS else None)


def _columns(header: list[str], path: Path) -> tuple[int, ...]:
    names = [name.strip().strip('"').lower() for name in header]
    if "x" not in names or "y" not in names:
        raise InputError(f"{path}: the columns x, y and z are needed, found {', '.join(names[:8])}")
    return tuple(names.index(name) for name in "xyz" if name in names)


def _rows(
    lines: list[str], delimiter: str | None, columns: tuple[int, ...], path: Path, before: int = 0
) -> tuple[str | list[str], ...]:
    """Lines of points as cells; comments, blank lines and FreeSurfer's words and counts as they are."""
    rows: list[str | list[str]] = []
    for number, line in enumerate(lines, before + 1):
        cells = _cells(line, delimiter, path)
        if not _is_content(line) or (delimiter is None and (not _is_number(cells[0]) or len(cells) == 1)):
            rows.append(line)
        elif len(cells) <= max(columns) or not all(_is_number(cells[k]) for k in columns):
            raise InputError(f"{path}: line {number} is no point: {len(columns)} numbers are needed")
        else:
            rows.append(cells)
    return tuple(rows)


def _cells(line: str, delimiter: str | None, path: Path) -> list[str]:
    if delimiter is None:
        return line.split()
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error as error:
        raise InputError(f"{path}: not a table ({error})") from error


def _is_content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _check_scanner(is_scanner: bool, path: Path) -> None:
    if not is_scanner:
        raise InputError(
            f"{path}: its points are in FreeSurfer's surface coordinates; save them as scanner RAS (real RAS) first"
        )
