"""Compressed files, read and written by ISA-L: several times as fast as zlib, and as small."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from isal import igzip

_SUFFIXES = (".gz", ".mgz")
_LEVEL = 1  # of 0 to 3; noise, which most of an image is, gets no smaller by more


def is_compressed(path: str | Path) -> bool:
    """Whether a file's name says that it is."""
    return os.fspath(path).lower().endswith(_SUFFIXES)


@contextmanager
def writer(path: Path) -> Iterator[Any]:
    """A file to write from front to back, compressed where its name says so."""
    with path.open("wb") as file:
        if not is_compressed(path):
            yield file
            return
        with igzip.GzipFile("", "wb", compresslevel=_LEVEL, fileobj=file, mtime=0) as stream:
            yield stream


def reader(holder: Any) -> Any:
    """The file that a nibabel image's ``file_map`` names, open for reading."""
    name = holder.filename
    return igzip.open(name, "rb") if name and is_compressed(name) else holder.get_prepare_fileobj("rb")


def save(image: Any, path: Path) -> None:
    """Write a nibabel image, compressed where its name says so.

    Raises:
        OSError: the system refuses.
    """
    with writer(path) as stream:
        image.to_stream(stream)
