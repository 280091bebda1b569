"""Which images make pairs. A pair's number says which two they are, so that no list of pairs is ever made."""

from collections.abc import Sequence
from typing import overload

import numpy as np

from regnet.data.rows import Rows
from regnet.data.table import Pair, Row, Subject
from regnet.errors import InputError

PAIRINGS = ("all", "within", "atlas")


class Pairing(Sequence[Pair]):
    """Pairs of images that are computed from their number.

    Attributes:
        images: what the pairs are made of.
    """

    images: Sequence[Subject]

    def pair(self, number: int) -> Pair:
        """The pair of that number."""
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> Pair: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Pair]: ...
    def __getitem__(self, index: int | slice) -> Pair | Sequence[Pair]:
        if isinstance(index, slice):
            return [self.pair(number) for number in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(f"pair {index} of {len(self)}")
        return self.pair(index)

    def has(self, part: str) -> bool:
        """Whether any image has labels, or points."""
        return has(self.images, part)


class AllPairs(Pairing):
    """Every image onto every other; the ``n - 1`` pairs of one fixed image come one after another.

    Raises:
        InputError: less than two images.
    """

    def __init__(self, images: Sequence[Subject]) -> None:
        if len(images) < 2:
            names = ", ".join(image.id for image in images) or "none"
            raise InputError(f"one unpaired image ({names}) makes no pair; give two at least")
        self.images = images

    def __len__(self) -> int:
        return len(self.images) * (len(self.images) - 1)

    def pair(self, number: int) -> Pair:
        """The pair of that number."""
        fixed, step = divmod(number, len(self.images) - 1)
        return self.images[(fixed + 1 + step) % len(self.images)].onto(self.images[fixed])


class WithinGroups(Pairing):
    """Every image onto every other of the same group (a person's visits).

    Raises:
        InputError: no group has two images.
    """

    def __init__(self, images: Sequence[Subject]) -> None:
        self.images = images
        groups: dict[str, list[int]] = {}
        for n, image in enumerate(images):
            groups.setdefault(image.group or image.id, []).append(n)
        sizes = np.array([len(group) for group in groups.values()], dtype=np.int64)
        self._members = np.array([n for group in groups.values() for n in group], dtype=np.int64)
        self._first = np.concatenate([[0], np.cumsum(sizes)])  # of a group, among the members
        self._ends = np.concatenate([[0], np.cumsum(sizes * (sizes - 1))])  # of its pairs
        if not len(self):
            raise InputError("no group has two images: pairs within groups need a column 'group' that repeats")

    def __len__(self) -> int:
        return int(self._ends[-1])

    def pair(self, number: int) -> Pair:
        """The pair of that number."""
        group = int(np.searchsorted(self._ends, number, side="right")) - 1
        first, size = int(self._first[group]), int(self._first[group + 1] - self._first[group])
        fixed, step = divmod(number - int(self._ends[group]), size - 1)
        moving = self._members[first + (fixed + 1 + step) % size]
        return self.images[int(moving)].onto(self.images[int(self._members[first + fixed])])


class AtlasPairs(Pairing):
    """One image, the atlas, onto every other."""

    def __init__(self, images: Sequence[Subject], atlas: Subject) -> None:
        self.images, self.atlas = images, atlas

    def __len__(self) -> int:
        return len(self.images)

    def pair(self, number: int) -> Pair:
        """The pair of that number."""
        return self.atlas.onto(self.images[number])

    def has(self, part: str) -> bool:
        """Whether the atlas has labels, or points, and any image, too."""
        return getattr(self.atlas, part) is not None and super().has(part)


def has(rows: Sequence[Row], part: str) -> bool:
    """Whether any of the rows has ``labels``, or ``points``: of a pair, both."""
    if isinstance(rows, Pairing):
        return rows.has(part)
    if not rows:
        return False
    names = (part,) if isinstance(rows[0], Subject) else (f"moving_{part}", f"fixed_{part}")
    if isinstance(rows, Rows):
        return rows.has(*names)
    return any(all(getattr(row, name) for name in names) for row in rows)
