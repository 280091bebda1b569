"""Names that are about to be written, kept from other runs meanwhile."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from regnet.errors import InputError
from regnet.io.atomic import temporaries

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Hold a file's name; another process that wants it is refused, not made to wait.

    A hidden, locked file beside it says so, which goes afterwards. The system unlocks it whatever becomes of this
    process. What a killed run has left half-written goes when the next one claims the same name. Folders are made, and
    go again if nothing was written. File systems without locks are taken as they are.

    Raises:
        InputError: another run holds the name, or the folder cannot be written.
    """
    lock = path.with_name(f".{path.name}.lock")
    made = [folder for folder in path.parents if not folder.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from error
    try:
        if fcntl is not None and _lock(descriptor, path):
            for left in temporaries(path):  # of a run that was killed: nobody else may be writing this name
                with suppress(OSError):
                    left.unlink()
        try:
            yield
        finally:
            with suppress(OSError):
                lock.unlink()
    finally:
        os.close(descriptor)
        for folder in made:
            with suppress(OSError):
                folder.rmdir()


def _lock(descriptor: int, path: Path) -> bool:
    """Whether the name is ours alone; False where there are no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            raise InputError(f"{path}: another run is writing it; choose another name, or wait") from error
        return False
    # Whoever held it before may have removed the file that we have locked.
    if os.fstat(descriptor).st_nlink == 0:
        raise InputError(f"{path}: another run has just written it")
    return True
