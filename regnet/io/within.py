"""Names that must not lead out of a folder."""

import os
from pathlib import Path


def is_within(folder: Path, path: Path) -> bool:
    """Whether a file's name stays in a folder, whoever wrote that name.

    Args:
        folder: where it must stay; may be a link itself.
        path: begins with ``folder``; need not exist.

    Returns:
        False where the rest is empty, has ``..`` or a control character, or a link on the way leads out.
    """
    try:
        name = path.relative_to(folder)
    except ValueError:
        return False
    if not name.parts or ".." in name.parts or has_control(name.as_posix()):
        return False
    return Path(os.path.realpath(path.parent)).is_relative_to(os.path.realpath(folder))


def has_control(text: str) -> bool:
    """Whether a text holds NUL, a line's end, an escape or another control character."""
    return any(ord(letter) < 32 or ord(letter) == 127 for letter in text)
