"""The files that one command writes: refused early, and all written or none."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from regnet.errors import InputError
from regnet.io import check_output, claimed

SOME_FAILED = 3
"""Exit status where some of many pairs failed and the others are done."""


@contextmanager
def outputs(paths: Sequence[Path], overwrite: bool, inputs: Sequence[str | Path | None] = ()) -> Iterator[None]:
    """Check the names before the block works, keep them from other runs, and remove what was written when it fails.

    Args:
        paths: every file the block will write.
        overwrite: whether existing ones may be replaced.
        inputs: files that the block reads, None left out; never replaced.

    Raises:
        InputError: a file exists already, is named twice, is an input, or another run is writing it.
    """
    seen = set()
    read = {os.path.realpath(path) for path in inputs if path is not None}
    for path in paths:
        real = os.path.realpath(path)  # which, unlike resolve(), takes links that go round in circles
        if real in read:
            raise InputError(f"{path}: is an input and an output; choose another name for the output")
        if real in seen:
            raise InputError(f"{path}: is named for two outputs")
        seen.add(real)
    for path in paths:
        check_output(path, overwrite)
    with ExitStack() as held:
        for path in paths:
            held.enter_context(claimed(path))
            check_output(path, overwrite)  # again: another run may have finished meanwhile
        before = {path: _stamp(path) for path in paths}
        try:
            yield
        except BaseException:
            for path in paths:
                if _stamp(path) != before[path]:
                    with suppress(OSError):
                        path.unlink()
            raise


def check_suffix(path: Path, suffixes: Sequence[str], what: str) -> None:
    """Refuse a name whose kind we cannot write, before the work.

    Raises:
        InputError: ``path`` ends with none of ``suffixes``.
    """
    if not path.name.lower().endswith(tuple(suffixes)):
        raise InputError(f"{path}: {what} is written as {', '.join(suffixes)}")


def check_folder(path: Path, option: str) -> None:
    """Refuse a file, or something below one, where a folder is to be made.

    Raises:
        InputError: it is.
    """
    there = next((each for each in (path, *path.parents) if os.path.lexists(each)), path)
    if os.path.lexists(there) and not there.is_dir():
        raise InputError(f"{option} {path}: {there} is a file; a folder is needed")


def _stamp(path: Path) -> tuple[int, int] | None:
    """What tells one version of a file from the next; None: no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns
