"""The numbers of NIfTI and MGH files, read once from front to back in pieces, so that a file costs its image alone."""

import itertools
import math
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import torch
from torch import Tensor

from regnet.errors import InputError
from regnet.io import gz
from regnet.io.sound import check_float32

_PIECE = 1 << 22  # bytes read at a time
_WIDER = {
    np.dtype(kind): np.dtype(wider)
    for kind, wider in (("u2", "i4"), ("u4", "i8"), ("u8", "f8"), (np.longdouble, "f8"), ("f2", "f4"))
}
_DEFLATE = 1032  # no deflated stream grows by more than this factor


def check_promise(image: Any, path: Path) -> None:
    """Refuse a file that is too short for what its header promises, before any room is made.

    Compressed files are held to what a file of their size can hold at most; reading finds the rest.

    Raises:
        InputError: it is.
    """
    promised, size = _end(image), path.stat().st_size
    holds = size * _DEFLATE if gz.is_compressed(path) else size
    if promised > holds:
        raise InputError(
            f"{path}: truncated or damaged (the header promises {promised:,} bytes of {_times(image.shape)} voxels, "
            f"the file has {size:,})"
        )


def check_whole(image: Any, path: Path) -> None:
    """Refuse a file that ends early or is damaged where its voxels are of no interest, at the least cost.

    A compressed file says at its end how long it is; only where that is not what the header promises it is read.

    Raises:
        InputError: it ends early.
    """
    if not gz.is_compressed(path):
        return  # its length was seen when it was opened
    with path.open("rb") as file:
        file.seek(-4, 2)
        says = struct.unpack("<I", file.read(4))[0]
    if says != _end(image) % 2**32:
        for _ in pieces(image, path):
            pass


def volume_shape(image: Any) -> tuple[int, int, int]:
    """The first three axes of a nibabel image, with ones where it has fewer."""
    shape = (*(int(n) for n in image.shape), 1, 1)
    return shape[0], shape[1], shape[2]


def are_integers(image: Any) -> bool:
    """Whether a nibabel image's numbers are integers, without a slope."""
    data = image.dataobj
    scaled = nib.is_proxy(data) and (data.slope, data.inter) != (1, 0)
    return np.dtype(data.dtype).kind in "iu" and not scaled


def read_volumes(
    image: Any, name: object, dtype: torch.dtype | None = torch.float32, into: Tensor | None = None
) -> Iterator[Tensor]:
    """The volumes of an image one after the other, scaled, each ``(X, Y, Z)`` and contiguous.

    Args:
        image: a nibabel image; all its axes beyond the third count volumes, the fourth the fastest.
        name: what it is called in messages.
        dtype: of the result; None: integers for label maps, of a type that holds them.
        into: room for all volumes, ``(V, X, Y, Z)``; None: each gets its own.

    Raises:
        InputError: the file ends early or is damaged; without ``dtype``, a value that is not a whole number.
    """
    if np.dtype(image.dataobj.dtype).kind not in "iuf":
        raise InputError(f"{name}: colour or complex voxels; numbers are needed")
    shape = volume_shape(image)
    parts = _ahead(pieces(image, name))
    for k in range(math.prod(int(n) for n in image.shape[3:])):
        with _memory(name, shape):
            out = torch.empty(shape, dtype=dtype or torch.uint8) if into is None else into[k]
        start = 0
        while start < shape[2]:
            part = next(parts)
            stop = start + part.shape[2]
            if dtype is None:
                numbers = _integers(part, parts, name)
                out = _holding(out, numbers, start)
                part = numbers.numpy()
            # By numpy, in this thread alone: it has the time that unpacking takes, and wakes no others.
            with np.errstate(all="ignore"):
                room = out[..., start:stop].numpy()
                np.copyto(room, part, casting="unsafe")
            if dtype == torch.float32:
                check_float32(part, room, name)
            start = stop
        yield out
    for _ in parts:  # on to the end of the file, where its checksum is
        pass


def pieces(image: Any, name: object) -> Iterator[np.ndarray]:
    """The planes of an image in the order of the file, ``(X, Y, k)``, scaled; no piece has planes of two volumes."""
    x, y, z = volume_shape(image)
    count = math.prod(int(n) for n in image.shape[3:])
    data = image.dataobj
    if not nib.is_proxy(data):
        array = np.asanyarray(data).reshape(x, y, z, count, order="F")
        yield from (array[..., k] for k in range(count))
        return
    step = max(1, _PIECE // max(1, x * y * data.dtype.itemsize))
    with reading(name), gz.reader(image.file_map["image"]) as file:
        file.seek(data.offset)
        for _, start in itertools.product(range(count), range(0, z, step)):
            planes = min(step, z - start)
            raw = np.empty(x * y * planes, data.dtype)
            _fill(file, raw.data.cast("B"))
            yield _scaled(raw.reshape(x, y, planes, order="F"), data.slope, data.inter)
        while file.read(_PIECE):
            pass


def _ahead(parts: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    """The same, each made by a thread while the one before is used: unpacking takes longer than all the rest."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, parts, None)
        while (part := coming.result()) is not None:
            coming = pool.submit(next, parts, None)
            yield part


@contextmanager
def reading(name: object) -> Iterator[None]:
    """Turn what goes wrong within into one line about the file called ``name``.

    Raises:
        InputError: in place of any error that damaged bytes cause.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # damaged bytes raise whatever they happen to mean
        raise InputError(f"{name}: truncated or damaged ({' '.join(str(error).split()) or 'it ends early'})") from error


def integers(array: np.ndarray, name: object) -> Tensor:
    """Label values, exact, in a type that torch computes in: uint8, int8, int16, int32 or int64.

    Raises:
        InputError: a value is not a whole number, or beyond what is exact.
    """
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            whole = np.rint(array)
        if not np.array_equal(whole, array):
            raise InputError(f"{name}: label values must be whole numbers; this looks like an image or probabilities")
        if whole.size and np.abs(whole).max() >= 2**53:
            raise InputError(f"{name}: label values of 2**53 and more are not exact as floats; renumber them")
        array = whole.astype(smallest(int(whole.min()), int(whole.max())) or np.int64)
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        # torch computes little in uint16 and more: the next signed type holds the same values.
        if array.dtype.itemsize == 8 and array.size and int(array.max()) > np.iinfo(np.int64).max:
            raise InputError(f"{name}: label values of 2**63 and more do not fit into 64 bits; renumber them")
        array = array.astype({2: np.int32, 4: np.int64, 8: np.int64}[array.dtype.itemsize])
    return torch.from_numpy(plain(array))


def taken(array: np.ndarray, dtype: torch.dtype, name: object) -> Tensor:
    """Numbers of a file in a type of torch's, contiguous.

    Raises:
        InputError: a number that float32 does not hold.
    """
    found = torch.from_numpy(plain(array)).to(dtype).contiguous()
    if dtype == torch.float32:
        check_float32(array, found.numpy(), name)
    return found


def _integers(part: np.ndarray, rest: Iterator[np.ndarray], name: object) -> Tensor:
    try:
        return integers(part, name)
    except InputError:
        for _ in rest:  # damage, which shows at the end of a compressed file, explains odd values
            pass
        raise


def smallest(low: int, high: int) -> Any:
    """The smallest of uint8, int16 and int32 that holds two numbers, None if none does."""
    for dtype in (np.uint8, np.int16, np.int32):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return dtype
    return None


def _holding(out: Tensor, part: Tensor, filled: int) -> Tensor:
    """``out`` in a type that also holds ``part``; its first ``filled`` planes are kept."""
    wider = torch.promote_types(out.dtype, part.dtype) if filled else part.dtype
    return out if wider == out.dtype else out.to(wider) if filled else torch.empty_like(out, dtype=wider)


def plain(array: np.ndarray) -> np.ndarray:
    """The same numbers in the machine's byte order, in a type that every torch knows."""
    dtype = _WIDER.get(array.dtype.newbyteorder("="), array.dtype.newbyteorder("="))
    with np.errstate(all="ignore"):  # what the type does not hold becomes infinite, and who needs it finite says so
        array = array.astype(dtype, copy=False)
    return array if array.flags.writeable else array.copy(order="K")


def _scaled(raw: np.ndarray, slope: float, intercept: float) -> np.ndarray:
    if (slope, intercept) == (1, 0):
        return raw
    with np.errstate(all="ignore"):
        return raw.astype(np.float64) * slope + intercept


def _fill(file: Any, room: memoryview) -> None:
    done = 0
    while done < len(room):
        got = file.readinto(room[done:])
        if not got:
            raise EOFError(f"it ends {len(room) - done:,} bytes too early")
        done += got


@contextmanager
def _memory(name: object, shape: tuple[int, ...]) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # torch's word for it
        raise InputError(f"{name}: the {_times(shape)} voxels do not fit into memory") from error


def _end(image: Any) -> int:
    """Where the voxels of a file end, in bytes."""
    data = image.dataobj
    return int(data.offset) + math.prod(int(n) for n in data.shape) * data.dtype.itemsize


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join(f"{int(n):,}" for n in shape)
