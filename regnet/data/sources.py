"""Where the rows of a study come from: a table, a Learn2Reg dataset, or whatever has a ``read``."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from regnet.data.learn2reg import is_task, read_task
from regnet.data.table import Row, read_table
from regnet.errors import InputError


class Listing(Protocol):
    """Anything that lists images or pairs: :class:`regnet.data.Folder`, :class:`regnet.data.Bids`, or your own."""

    def read(self) -> Sequence[Row]:
        """The rows."""


def read_rows(source: str | Path | Listing, files: bool = True) -> Sequence[Row]:
    """The images or pairs of a study.

    Args:
        source: a table (``.csv``, ``.json``), a Learn2Reg ``NAME_dataset.json``, or an object with ``read``.
        files: whether the files that a table names must exist.

    Raises:
        InputError: it cannot be read.
    """
    if not isinstance(source, str | Path):
        return source.read()
    path = Path(source)
    if path.is_dir():
        raise InputError(f"{path}: is a folder; say how its files are named: data=folder or data=bids (docs/data.md)")
    if path.suffix.lower() == ".json" and is_task(_content(path)):
        return read_task(path)
    return read_table(path, files)


def _content(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None  # whoever reads it as a table says what is wrong
