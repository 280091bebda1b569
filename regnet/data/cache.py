"""What was prepared once, kept in files that any number of processes share."""

import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from regnet import __version__
from regnet.errors import InputError
from regnet.io.atomic import atomic_path

_log = logging.getLogger(__name__)


class Cache:
    """A folder of tensors by the content of the files they were made from and by how.

    There is no lock: an entry is written under another name and then renamed, so it is whole or absent, and processes
    that make the same one write the same. Tensors that were read are memory-mapped: processes share their pages. A
    file that was moved or copied is known again by its content; a file that changed gives new entries. Entries of
    other settings or of another version of regnet stay until the folder is deleted, which is safe at any time.

    Args:
        folder: made where it does not exist.
        max_gb: no entry is written any more when the folder is larger; None: no limit.
    """

    def __init__(self, folder: str | Path, max_gb: float | None = None) -> None:
        self.folder = Path(folder).expanduser()
        self._digests: dict[Path, str] = {}
        used = sum(file.stat().st_size for file in self.folder.glob("*/*.safetensors")) if max_gb is not None else 0
        self._left = float("inf") if max_gb is None else max_gb * 1e9 - used

    def get(
        self,
        kind: str,
        files: Sequence[Path],
        settings: Mapping[str, Any],
        make: Callable[[], Mapping[str, Tensor]],
    ) -> Mapping[str, Tensor]:
        """Tensors made from files.

        Args:
            kind: of tensors, in a word.
            files: all that they are made from.
            settings: how, as plain values.
            make: makes them, where they are not there.

        Raises:
            InputError: a file cannot be read.
        """
        about = [kind, [self._digest(file) for file in files], dict(settings), __version__]
        name = hashlib.blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=16).hexdigest()
        path = self.folder / name[:2] / f"{name}.safetensors"
        if path.is_file():
            try:
                return load_file(path)
            except (SafetensorError, OSError) as error:  # a damaged disk: made anew
                _log.warning("%s: cannot be read and is made anew (%s)", path, error)
        tensors = make()
        whole = {name: tensor.contiguous() for name, tensor in tensors.items()}
        size = sum(tensor.numel() * tensor.element_size() for tensor in whole.values())
        self._write(path, size, lambda temporary: save_file(whole, temporary))
        return tensors

    def _write(self, path: Path, size: int, write: Callable[[Path], object]) -> None:
        if size > self._left:
            return
        self._left -= size
        try:
            with atomic_path(path, overwrite=True) as temporary:
                write(temporary)
        except (InputError, SafetensorError) as error:  # a full disk must not end a training
            self._left = -1
            _log.warning("the cache is written no more: %s", error)

    def _digest(self, file: Path) -> str:
        """Of the content; known without reading where name, size and time of change are those of a file read before."""
        if file not in self._digests:
            try:
                stat = file.stat()
                identity = f"{file.resolve()}\n{stat.st_size}\n{stat.st_mtime_ns}"
                note = self.folder / "files" / hashlib.blake2b(identity.encode(), digest_size=16).hexdigest()
                digest = note.read_text() if note.is_file() else ""
                if len(digest) != 32:
                    digest = content_digest(file)
                    self._write(note, len(digest), partial(Path.write_text, data=digest))
            except OSError as error:
                raise InputError(f"{file}: cannot be read ({error.strerror or error})") from error
            self._digests[file] = digest
        return self._digests[file]


def content_digest(file: Path) -> str:
    """A hash of a file's bytes, 32 hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=16)
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
