"""The table of image pairs: one reader for training, registration and evaluation (``docs/table.md``)."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from regnet.data.cells import read_cells
from regnet.data.rows import Rows
from regnet.errors import InputError
from regnet.io.within import has_control

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
SUBJECT_COLUMNS = ("subject", "image", *SUBJECT_FILES, "split", "group")


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
    """One image: a row of an unpaired table; ``group`` is the person, where there are several images of one."""

    id: str
    image: tuple[Path, ...]
    labels: Path | None = None
    mask: Path | None = None
    points: Path | None = None
    split: str = ""
    group: str = ""
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
            split=fixed.split,
        )


Row = Pair | Subject


def read_pairs(path: str | Path) -> Sequence[Pair]:
    """Read a paired table.

    Args:
        path: CSV with columns ``moving`` and ``fixed`` (channels joined by ``;``) and any of ``id``,
            ``moving_labels``, ``fixed_labels``, ``moving_mask``, ``fixed_mask``, ``moving_points``,
            ``fixed_points``, ``initial_transform``, ``true_warp``, ``split``, ``group``; or JSON, a list of objects
            with these keys. Paths are relative to the table's folder. Unknown columns are kept in ``extra`` and named
            in the log.

    Returns:
        The rows, in order; each is made when it is asked for.

    Raises:
        InputError: the table cannot be read, is unpaired or empty, an id repeats, or a row lacks a file or names one
            that does not exist; the message names table, row and file.
    """
    rows = read_table(path)
    if not isinstance(rows[0], Pair):
        raise InputError(f"{path}: has one image a row; columns 'moving' and 'fixed' are needed here")
    return rows  # type: ignore[return-value]  # a table is paired or unpaired as a whole


def read_table(path: str | Path, files: bool = True) -> Rows[Pair] | Rows[Subject]:
    """Read a table that is paired (see :func:`read_pairs`) or unpaired.

    An unpaired table has columns ``image`` and any of ``subject``, ``labels``, ``mask``, ``points``, ``split``,
    ``group``.

    Args:
        path: CSV or JSON.
        files: whether the files must exist.

    Raises:
        InputError: as :func:`read_pairs`.
    """
    path = Path(path)
    header, cells, lines = read_cells(path, PAIR_COLUMNS + SUBJECT_COLUMNS)
    paired = "moving" in header and "fixed" in header
    if not paired and "image" not in header:
        raise InputError(
            f"{path}: needs columns 'moving' and 'fixed' (or 'image', unpaired), comma-separated; found "
            f"{', '.join(header)}"
        )
    images, parts = (("moving", "fixed"), PAIR_FILES) if paired else (("image",), SUBJECT_FILES)
    for name in images:
        column = header.index(name)
        for line, row in zip(lines, cells, strict=True):
            if not row[column].replace(";", "").strip():
                raise InputError(f"{path} line {line}: no {name}")
    if files:
        _check_files(path, header, cells, lines, (*images, *parts))
    name = "id" if paired else "subject"
    ids = [row[header.index(name)] for row in cells] if name in header else [""] * len(cells)
    _check_unique(path, [own or _number(n) for n, own in enumerate(ids)])
    if paired:
        return Rows(cells, _MakePair(path.parent, tuple(header)))
    return Rows(cells, _MakeSubject(path.parent, tuple(header)))


@dataclass(frozen=True)
class _Make:
    """Makes rows of the cells of one table."""

    folder: Path
    header: tuple[str, ...]

    def column(self, name: str) -> int | None:
        """Where the cells of that name are."""
        return self.header.index(name) if name in self.header else None

    def paths(self, cell: str) -> tuple[Path, ...]:
        """The files of a cell."""
        return tuple(self.folder / Path(name.strip()).expanduser() for name in cell.split(";") if name.strip())

    def files(self, cells: Mapping[str, str], columns: tuple[str, ...]) -> dict[str, Path]:
        """The files beside the images."""
        return {name: self.folder / Path(cells[name]).expanduser() for name in columns if cells.get(name)}

    def extra(self, cells: Mapping[str, str], columns: tuple[str, ...]) -> dict[str, str]:
        """The cells of unknown columns."""
        return {name: cell for name, cell in cells.items() if name and name not in columns}


class _MakePair(_Make):
    def __call__(self, number: int, row: list[str]) -> Pair:
        cells = dict(zip(self.header, row, strict=True))
        return Pair(
            id=cells.get("id") or _number(number),
            moving=self.paths(cells["moving"]),
            fixed=self.paths(cells["fixed"]),
            split=cells.get("split", ""),
            group=cells.get("group", ""),
            extra=self.extra(cells, PAIR_COLUMNS),
            **self.files(cells, PAIR_FILES),
        )


class _MakeSubject(_Make):
    def __call__(self, number: int, row: list[str]) -> Subject:
        cells = dict(zip(self.header, row, strict=True))
        return Subject(
            id=cells.get("subject") or _number(number),
            image=self.paths(cells["image"]),
            split=cells.get("split", ""),
            group=cells.get("group", ""),
            extra=self.extra(cells, SUBJECT_COLUMNS),
            **self.files(cells, SUBJECT_FILES),
        )


def _number(index: int) -> str:
    return f"{index + 1:04d}"


def _check_unique(path: Path, ids: list[str]) -> None:
    seen: set[str] = set()
    for name in ids:
        if name in seen:
            raise InputError(f"{path}: {name!r} names two rows")
        if "/" in name or "\\" in name:  # ids become file names
            raise InputError(f"{path}: {name!r} must not hold a slash, since it names output files")
        if has_control(name):
            raise InputError(f"{path}: {name!r} must not hold a control character, since it names output files")
        seen.add(name)


def _check_files(path: Path, header: list[str], cells: list[list[str]], lines: list[int], names: Sequence[str]) -> None:
    """Every file is looked for once, however many rows name it."""
    known: set[str] = set()
    for name in names:
        column = header.index(name) if name in header else None
        if column is None:
            continue
        for line, row in zip(lines, cells, strict=True):
            cell = row[column]
            if cell in known:
                continue
            known.add(cell)
            for part in cell.split(";") if name in ("moving", "fixed", "image") else [cell]:
                if part.strip():
                    _check_file(path, line, name, part.strip())


def _check_file(path: Path, line: int, column: str, cell: str) -> None:
    try:
        file = path.parent / Path(cell).expanduser()
        os.stat(file)  # says why not, as is_file does not
        found = file.is_file()
    except FileNotFoundError:
        found = False
    except (OSError, RuntimeError, ValueError) as error:  # a name that is too long, a home of nobody
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise InputError(f"{path} line {line}: {column} {cell} cannot be looked for ({reason})") from error
    if not found:
        raise InputError(f"{path} line {line}: {column} {file} does not exist")
