"""Images in a folder, found by the pattern of their names."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regnet.data.table import SUBJECT_FILES, Subject
from regnet.errors import InputError

_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Folder:
    """A folder whose names follow patterns, such as ``{subject}/{session}/T1w.nii.gz``.

    A field in braces stands for any characters but ``/``, the same ones wherever it comes again; ``*`` for any as
    well. The fields of an image, joined by ``_``, are its id; ``{subject}`` is its group.

    Args:
        root: the folder.
        image: pattern of the images, below ``root``; several: the channels, which must all be there.
        labels, mask, points: patterns of what belongs to an image, with fields of ``image`` only; None: there is none.
        split: the split of all images, or the pattern of the subjects' ids by split (regular expressions).
    """

    root: str | Path
    image: str | Sequence[str]
    labels: str | None = None
    mask: str | None = None
    points: str | None = None
    split: str | Mapping[str, str] = ""

    def read(self) -> tuple[Subject, ...]:
        """The images, in the order of their names.

        Raises:
            InputError: no such folder, no image, or two of one id.
        """
        root = Path(self.root).expanduser()
        if not root.is_dir():
            raise InputError(f"{root}: no such folder")
        patterns = [self.image] if isinstance(self.image, str) else list(self.image)
        found = _find(root, patterns[0])
        subjects = [self._subject(root, patterns, file, values) for file, values in found]
        whole = [subject for subject in subjects if subject is not None]
        if not whole:
            raise InputError(f"{root}: no image is named {' with '.join(patterns)}")
        ids = [subject.id for subject in whole]
        twice = next((name for name in ids if ids.count(name) > 1), None) if len(set(ids)) < len(ids) else None
        if twice is not None:
            raise InputError(
                f"{root}: {twice!r} names two images of {patterns[0]}: put what tells them apart in braces"
            )
        return tuple(whole)

    def _subject(self, root: Path, patterns: list[str], file: Path, values: dict[str, str]) -> Subject | None:
        channels = [file, *(root / _filled(pattern, values) for pattern in patterns[1:])]
        if not all(channel.is_file() for channel in channels):
            return None
        patterned = {part: getattr(self, part) for part in SUBJECT_FILES}
        beside: dict[str, Any] = {part: root / _filled(name, values) for part, name in patterned.items() if name}
        name = "_".join(values.values()) or file.name.split(".")[0]
        return Subject(
            id=name,
            image=tuple(channels),
            group=values.get("subject", ""),
            split=self.split if isinstance(self.split, str) else _split(name, self.split),
            **{part: path for part, path in beside.items() if path.is_file()},
        )


def _find(root: Path, pattern: str) -> list[tuple[Path, dict[str, str]]]:
    """The files of that pattern, with the values of its fields."""
    seen: set[str] = set()
    expression = ""
    for n, part in enumerate(_FIELD.split(pattern)):
        if n % 2:
            expression += f"(?P={part})" if part in seen else f"(?P<{part}>[^/]+?)"
            seen.add(part)
        else:
            expression += "[^/]*".join(map(re.escape, part.split("*")))
    whole = re.compile(expression)
    found = []
    for file in sorted(root.glob(_FIELD.sub("*", pattern))):
        match = whole.fullmatch(file.relative_to(root).as_posix())
        if match and file.is_file():
            found.append((file, match.groupdict()))
    return found


def _filled(pattern: str, values: Mapping[str, str]) -> str:
    missing = [name for name in _FIELD.findall(pattern) if name not in values]
    if missing:
        raise InputError(f"pattern {pattern!r}: {{{missing[0]}}} is no field of the image's pattern")
    return _FIELD.sub(lambda match: values[match[1]], pattern)


def _split(name: str, splits: Mapping[str, str]) -> str:
    return next((split for split, pattern in splits.items() if re.fullmatch(pattern, name)), "unused")
