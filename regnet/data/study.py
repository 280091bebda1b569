"""The pairs of a study, split by split."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from regnet.data.pairing import PAIRINGS, AllPairs, AtlasPairs, WithinGroups
from regnet.data.rows import Rows
from regnet.data.sources import Listing, read_rows
from regnet.data.split import split_rows
from regnet.data.table import Pair, Row, Subject
from regnet.errors import InputError


class Study:
    """Reads the rows of a study once, and makes pairs of its images within each split.

    Args:
        source: see :func:`regnet.data.read_rows`.
        pairing: of images that are not paired: ``all``: every one onto every other; ``within``: of one ``group``;
            ``atlas``: the atlas onto each.
        atlas: id of a row, or an image file.
        atlas_labels: its label map, where the atlas is a file.
        shares: splits by people instead of by the rows' own split; see :func:`regnet.data.split_rows`.
        seed: of ``shares``.

    Raises:
        InputError: no such pairing, or an atlas without that pairing, or the other way round.
    """

    def __init__(
        self,
        source: str | Path | Listing,
        pairing: str = "all",
        atlas: str | Path | None = None,
        atlas_labels: str | Path | None = None,
        shares: Mapping[str, float] | None = None,
        seed: int = 0,
    ) -> None:
        if pairing not in PAIRINGS:
            raise InputError(f"data.pairing: one of {', '.join(PAIRINGS)}, got {pairing!r}")
        if (pairing == "atlas") != (atlas is not None):
            raise InputError("data: pairing=atlas and atlas=ID|FILE go together")
        rows = read_rows(source)
        if pairing != "all" and not all(isinstance(row, Subject) for row in rows):
            raise InputError(f"data.pairing={pairing}: makes pairs of images, but the list has pairs already")
        self._name = str(source) if isinstance(source, str | Path) else str(getattr(source, "root", source))
        self._pairing = pairing
        self._atlas = None if atlas is None else _atlas(rows, str(atlas), atlas_labels)
        if self._atlas is not None:
            rows = _select(rows, [row.id != str(atlas) for row in rows])
        self._rows = rows
        self._splits = split_rows(rows, shares, seed) if shares else _splits(rows)

    def pairs(self, *splits: str) -> Sequence[Pair]:
        """The pairs of some splits; empty where there are none.

        Raises:
            InputError: the images of these splits make no pairs.
        """
        rows = _select(self._rows, [split in splits for split in self._splits])
        if not rows or isinstance(rows[0], Pair):
            return rows  # type: ignore[return-value]  # a split is paired or unpaired as a whole
        images: Sequence[Subject] = rows  # type: ignore[assignment]
        if self._atlas is not None:
            return AtlasPairs(images, self._atlas)
        make: Callable[[Sequence[Subject]], Sequence[Pair]] = WithinGroups if self._pairing == "within" else AllPairs
        try:
            return make(images)
        except InputError as error:
            raise InputError(f"{self._name}, split {splits[-1]!r}: {error}") from error


def _atlas(rows: Sequence[Row], atlas: str, labels: str | Path | None) -> Subject:
    found = next((row for row in rows if isinstance(row, Subject) and row.id == atlas), None)
    if found is not None:
        return found
    files = [Path(file).expanduser() for file in (atlas, labels) if file is not None]
    for file in files:
        if not file.is_file():
            raise InputError(f"data.atlas: {file} is neither the id of an image of the study nor a file")
    return Subject("atlas", tuple(files[:1]), labels=files[1] if files[1:] else None)


def _splits(rows: Sequence[Row]) -> list[str]:
    return list(rows.column("split")) if isinstance(rows, Rows) else [row.split for row in rows]


def _select(rows: Sequence[Row], keep: Sequence[bool]) -> Sequence[Row]:
    if isinstance(rows, Rows):
        return rows.select(keep)
    return tuple(row for row, wanted in zip(rows, keep, strict=True) if wanted)
