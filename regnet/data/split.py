"""Who is trained on, validated on and tested on."""

import hashlib
import os
from collections.abc import Mapping, Sequence

from regnet.data.table import Row, Subject
from regnet.errors import InputError


def split_rows(rows: Sequence[Row], shares: Mapping[str, float], seed: int = 0) -> list[str]:
    """Share rows out so that no person, and no image, is in two splits.

    What belongs together: the rows of one ``group``, and pairs that have an image in common, directly or through
    others. Who goes where is a function of the seed and of the names alone, not of the order of the rows.

    Args:
        rows: images or pairs.
        shares: of the people, by split, such as ``{"val": 0.1, "test": 0.2}``; each gets one at least, the rest train.
        seed: of the draw.

    Returns:
        The split of each row.

    Raises:
        InputError: the shares make no sense, or there are too few people for them.
    """
    if "train" in shares or not all(0 < share < 1 for share in shares.values()) or sum(shares.values()) >= 1:
        raise InputError(f"data.split: shares between 0 and 1 of splits other than train, got {dict(shares)}")
    if len({isinstance(row, Subject) for row in rows}) > 1:
        raise InputError("data.split: a list of images and of pairs has its own splits; take data.split=null")
    people = _people(rows)
    order = sorted(set(people), key=lambda name: hashlib.sha256(f"{seed}/{name}".encode()).digest())
    counts = {split: max(1, round(share * len(order))) for split, share in shares.items()}
    if sum(counts.values()) >= len(order):
        raise InputError(
            f"data.split: {len(order)} people (or sets of pairs that share images) are too few for {dict(shares)}: "
            "give the table a column 'split'"
        )
    names = [split for split, count in counts.items() for _ in range(count)]
    chosen = dict(zip(order, names, strict=False))
    return [chosen.get(person, "train") for person in people]


def _people(rows: Sequence[Row]) -> list[str]:
    """A name for each row, the same for rows that belong together: the first of what they share."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        parent.setdefault(name, name)
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    images = [() if isinstance(row, Subject) else (*row.moving, *row.fixed) for row in rows]
    files = [os.path.abspath(file) for row_files in images for file in row_files]
    common = os.path.commonpath([os.path.dirname(file) for file in files]) if files else ""  # wherever the study lies
    keys = []
    for row, row_files in zip(rows, images, strict=True):
        names = [row.group] if row.group else [row.id] if isinstance(row, Subject) else []
        names += [os.path.relpath(os.path.abspath(file), common) for file in row_files]
        for name in names:
            one, two = sorted((root(names[0]), root(name)))
            parent[two] = one  # the smaller name stays, whatever the order
        keys.append(names[0])
    return [root(key) for key in keys]
