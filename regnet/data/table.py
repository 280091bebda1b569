"""The table of image pairs: one reader for training, registration and evaluation (``docs/table.md``)."""

import csv
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from regnet.errors import InputError

PAIR_FILES = (
    "moving_labels",
    "fixed_labels",
    "moving_mask",
    "fixed_mask",
    "moving_points",
    "fixed_points",
    "initial_transform",
    "true_warp",
)
PAIR_COLUMNS = ("id", "moving", "fixed", *PAIR_FILES, "split", "group")
SUBJECT_FILES = ("labels", "mask", "points")
SUBJECT_COLUMNS = ("subject", "image", *SUBJECT_FILES, "split")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pair:
    """One row of a paired table; paths are absolute or relative to the working directory, never to the table.

    Attributes:
        id: unique name; ``0001``, ``0002``, … where the table has no ``id``.
        moving, fixed: one file per channel.
        true_warp: the displacement that made ``fixed`` from ``moving``, where it is known (synthetic pairs).
        split: ``train``, ``val``, ``test`` or other; empty where the table has none.
        extra: cells of unknown columns.
    """

    id: str
    moving: tuple[Path, ...]
    fixed: tuple[Path, ...]
    moving_labels: Path | None = None
    fixed_labels: Path | None = None
    moving_mask: Path | None = None
    fixed_mask: Path | None = None
    moving_points: Path | None = None
    fixed_points: Path | None = None
    initial_transform: Path | None = None
    true_warp: Path | None = None
    split: str = ""
    group: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Subject:
    """One row of an unpaired table."""

    id: str
    image: tuple[Path, ...]
    labels: Path | None = None
    mask: Path | None = None
    points: Path | None = None
    split: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)

    def onto(self, fixed: "Subject") -> Pair:
        """The pair that registers this subject to another."""
        return Pair(
            id=f"{self.id}_to_{fixed.id}",
            moving=self.image,
            fixed=fixed.image,
            moving_labels=self.labels,
            fixed_labels=fixed.labels,
            moving_mask=self.mask,
            fixed_mask=fixed.mask,
            moving_points=self.points,
            fixed_points=fixed.points,
            split=self.split,
        )


def read_pairs(path: str | Path) -> tuple[Pair, ...]:
    """Read a paired table.

    Args:
        path: CSV with columns ``moving`` and ``fixed`` (channels joined by ``;``) and any of ``id``,
            ``moving_labels``, ``fixed_labels``, ``moving_mask``, ``fixed_mask``, ``moving_points``,
            ``fixed_points``, ``initial_transform``, ``true_warp``, ``split``, ``group``. Paths are relative to the
            table's folder. Unknown columns are kept in ``extra`` and named in the log.

    Returns:
        The rows, in order.

    Raises:
        InputError: the table cannot be read, is unpaired or empty, an id repeats, or a row lacks a file or names one
            that does not exist; the message names table, row and file.
    """
    path = Path(path)
    rows = read_table(path)
    pairs = tuple(row for row in rows if isinstance(row, Pair))
    if len(pairs) < len(rows):
        raise InputError(f"{path}: has one image a row; columns 'moving' and 'fixed' are needed here")
    return pairs


def read_table(path: str | Path) -> tuple[Pair, ...] | tuple[Subject, ...]:
    """Read a table that is paired (see :func:`read_pairs`) or unpaired.

    An unpaired table has columns ``image`` and any of ``subject``, ``labels``, ``mask``, ``points``, ``split``.

    Raises:
        InputError: as :func:`read_pairs`.
    """
    path = Path(path)
    header, rows = _read_cells(path)
    if "moving" in header and "fixed" in header:
        _name_unknown(path, header, PAIR_COLUMNS)
        pairs = tuple(_pair(path, line, number, cells) for number, (line, cells) in enumerate(rows, 1))
        _check_unique(path, [pair.id for pair in pairs])
        return pairs
    if "image" in header:
        _name_unknown(path, header, SUBJECT_COLUMNS)
        subjects = tuple(_subject(path, line, number, cells) for number, (line, cells) in enumerate(rows, 1))
        _check_unique(path, [subject.id for subject in subjects])
        return subjects
    raise InputError(
        f"{path}: needs columns 'moving' and 'fixed' (or 'image', unpaired), comma-separated; found {', '.join(header)}"
    )


def _read_cells(path: Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """Header, and (line in the file, cells by column) of every row that is not blank."""
    try:
        # utf-8-sig: spreadsheets put a byte-order mark before the first column's name
        with path.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.reader(stream)
            header = [name.strip() for name in next(reader, [])]
            lines = [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader]
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: not a CSV table in UTF-8 ({error})") from error
    repeated = sorted({name for name in header if name and header.count(name) > 1})
    if repeated:
        raise InputError(f"{path}: column {', '.join(repeated)} comes twice")
    rows = []
    for line, cells in lines:
        if not any(cells):
            continue
        if len(cells) > len(header):
            raise InputError(f"{path} line {line}: {len(cells)} cells, but the header has {len(header)}")
        rows.append((line, dict(zip(header, cells + [""] * (len(header) - len(cells)), strict=True))))
    if header and not rows:
        raise InputError(f"{path}: has no rows")
    if not header:
        raise InputError(f"{path}: is empty")
    return header, rows


def _name_unknown(path: Path, header: list[str], known: tuple[str, ...]) -> None:
    unknown = [name for name in header if name and name not in known]
    if unknown:
        _log.warning("%s: columns kept but not used: %s", path, ", ".join(unknown))


def _check_unique(path: Path, ids: list[str]) -> None:
    seen: set[str] = set()
    for name in ids:
        if name in seen:
            raise InputError(f"{path}: {name!r} names two rows")
        if "/" in name or "\\" in name:  # ids become file names
            raise InputError(f"{path}: {name!r} must not hold a slash, since it names output files")
        seen.add(name)


def _existing(path: Path, line: int, column: str, cell: str) -> Path:
    try:
        file = path.parent / Path(cell).expanduser()
        found = file.is_file()
    except (OSError, RuntimeError) as error:  # a name that is too long, a home of nobody
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise InputError(f"{path} line {line}: {column} {cell} cannot be looked for ({reason})") from error
    if not found:
        raise InputError(f"{path} line {line}: {column} {file} does not exist")
    return file


def _channels(path: Path, line: int, column: str, cell: str) -> tuple[Path, ...]:
    names = [name.strip() for name in cell.split(";") if name.strip()]
    if not names:
        raise InputError(f"{path} line {line}: no {column}")
    return tuple(_existing(path, line, column, name) for name in names)


def _files(path: Path, line: int, columns: tuple[str, ...], cells: Mapping[str, str]) -> dict[str, Path]:
    return {name: _existing(path, line, name, cells[name]) for name in columns if cells.get(name)}


def _pair(path: Path, line: int, number: int, cells: Mapping[str, str]) -> Pair:
    return Pair(
        id=cells.get("id") or f"{number:04d}",
        moving=_channels(path, line, "moving", cells["moving"]),
        fixed=_channels(path, line, "fixed", cells["fixed"]),
        split=cells.get("split", ""),
        group=cells.get("group", ""),
        extra={name: cell for name, cell in cells.items() if name and name not in PAIR_COLUMNS},
        **_files(path, line, PAIR_FILES, cells),
    )


def _subject(path: Path, line: int, number: int, cells: Mapping[str, str]) -> Subject:
    return Subject(
        id=cells.get("subject") or f"{number:04d}",
        image=_channels(path, line, "image", cells["image"]),
        split=cells.get("split", ""),
        extra={name: cell for name, cell in cells.items() if name and name not in SUBJECT_COLUMNS},
        **_files(path, line, SUBJECT_FILES, cells),
    )
