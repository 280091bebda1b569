"""Many rows, small in memory."""

from collections.abc import Iterator, Sequence
from typing import Generic, Protocol, TypeVar, overload

import numpy as np

T_co = TypeVar("T_co", covariant=True)
_MARK = "\x1f"  # between the cells of a row: ASCII's unit separator, which no path holds


class Make(Protocol[T_co]):
    """Makes rows of cells."""

    def column(self, name: str) -> int | None:
        """Where the cells of that name are, None if there are none."""

    def __call__(self, number: int, row: list[str]) -> T_co:
        """The row of these cells, the ``number``-th of its table."""


class Rows(Sequence[T_co], Generic[T_co]):
    """The rows of a table, kept as one array of bytes and made when asked for.

    A worker process shares the array with its parent, whereas of Python objects it would copy every page it counts a
    reference on (pytorch issue 13246).

    Args:
        cells: row by row, as many each.
        make: makes a row of its number and cells.
    """

    def __init__(self, cells: Sequence[Sequence[str]], make: Make[T_co]) -> None:
        packed = [_MARK.join(row).encode("utf-8", "surrogateescape") for row in cells]
        self._text = np.frombuffer(b"".join(packed), dtype=np.uint8)
        self._ends = np.cumsum([0, *map(len, packed)], dtype=np.int64)
        self._index = np.arange(len(packed), dtype=np.int64)
        self._make = make

    def __len__(self) -> int:
        return len(self._index)

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> "Rows[T_co]": ...
    def __getitem__(self, index: int | slice) -> "T_co | Rows[T_co]":
        if isinstance(index, slice):
            return self._select(self._index[index])
        number = int(self._index[index])
        return self._make(number, self._cells(number))

    def column(self, name: str) -> Iterator[str]:
        """The cells of one column; empty ones where there is no such column."""
        column = self._make.column(name)
        for number in self._index.tolist():
            yield "" if column is None else self._cells(number)[column]

    def has(self, *names: str) -> bool:
        """Whether any row has a cell in each of these columns."""
        if any(self._make.column(name) is None for name in names):
            return False
        return any(all(cells) for cells in zip(*map(self.column, names), strict=True))

    def select(self, keep: Sequence[bool]) -> "Rows[T_co]":
        """The rows to keep; their cells stay where they are."""
        return self._select(self._index[np.asarray(keep, dtype=bool)])

    def _select(self, index: np.ndarray) -> "Rows[T_co]":
        part = object.__new__(type(self))
        part._text, part._ends, part._index, part._make = self._text, self._ends, index, self._make
        return part

    def _cells(self, number: int) -> list[str]:
        text = self._text[self._ends[number] : self._ends[number + 1]].tobytes()
        return text.decode("utf-8", "surrogateescape").split(_MARK)
