"""Outputs that are either whole or absent."""

import glob
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from regnet.errors import InputError

_DIGITS = 12


def check_output(path: str | Path, overwrite: bool = False) -> Path:
    """Refuse an output that would replace something; to be asked before the work starts.

    Raises:
        InputError: ``path`` exists and ``overwrite`` is not set, or is no regular file.
    """
    path = Path(path)
    if os.path.lexists(path):
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: exists and is not a regular file; choose another name")
        if not overwrite:
            raise InputError(f"{path}: exists already; choose another name or give --overwrite")
    return path


@contextmanager
def atomic_path(path: str | Path, overwrite: bool = False) -> Iterator[Path]:
    """Yield a temporary name beside ``path``, with its suffixes, that takes its place when the block succeeds.

    Parent folders are made. When the block fails, whatever it wrote is removed and ``path`` is as before. A process
    that is killed leaves the temporary, see :func:`temporaries`.

    Raises:
        InputError: the output exists and ``overwrite`` is not set, or the system refuses to write it (disk full,
            no permission).
    """
    path = check_output(path, overwrite)
    temporary = path.with_name(f".{uuid.uuid4().hex[:_DIGITS]}.{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def temporaries(path: Path) -> list[Path]:
    """The temporary files of :func:`atomic_path` beside a file: in use, or left by a process that was killed."""
    return list(path.parent.glob(f".{'[0-9a-f]' * _DIGITS}.{glob.escape(path.name)}"))
