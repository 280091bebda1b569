"""FreeSurfer's warps: ``.mgz`` with the vectors as frames and the two geometries behind them.

On the fixed (target) grid: the place in the moving (source) image, absolute or relative, in voxels or scanner RAS; a
number says which of the four. An MGH file's intent is 3 for such a warp. All numbers are big-endian. Source: the layout
that surfa (FreeSurfer's own) reads and writes.
"""

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
import torch

from regnet import ops
from regnet.errors import InputError
from regnet.io.atomic import atomic_path
from regnet.io.fields import from_mm, from_places, world
from regnet.spatial.displacement import Displacement
from regnet.spatial.grid import Grid

SUFFIXES = (".mgz", ".mgh")
_WARP = 3
_FLOAT = 3
_HEADER, _SCAN = 284, 20  # bytes before the vectors; of the scanner's parameters behind them
_PLACES_VOXELS, _STEPS_VOXELS, _PLACES_RAS, _STEPS_RAS = range(4)
_GEOMETRY, _META, _SHEARED = 10, 13, 15
# Tags without a length before their data, which are nothing of a warp's.
_UNMEASURED = {1, 2, 11, 12, 20, 30}


def read(path: Path) -> Displacement:
    """Read a warp.

    Raises:
        InputError: missing, damaged, or no warp.
    """
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        version, *shape, frames, kind = struct.unpack_from(">I5i", data)
        if version >> 8 != _WARP or frames != 3 or kind != _FLOAT or min(shape) < 1:
            raise InputError(f"{path}: an MGH file, but no warp (intent 3, three frames of float)")
        size = 4 * 3 * math.prod(shape)
        if len(data) < _HEADER + size:
            raise ValueError(f"{shape} voxels are not in it")
        stored = np.frombuffer(data, ">f4", size // 4, _HEADER).reshape(3, *reversed(shape))
        meaning, source, grid = _trailer(data[_HEADER + size + _SCAN :])
        if grid.shape != tuple(shape):
            raise ValueError(f"a warp on {grid.shape} voxels that holds {tuple(shape)}")
    except (ValueError, OSError, EOFError, zlib.error, struct.error) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: damaged, or no warp of FreeSurfer's ({' '.join(str(error).split())})") from error
    vectors = torch.from_numpy(stored.transpose(0, 3, 2, 1).astype(np.float32))
    if not bool(torch.isfinite(vectors).all()):
        raise InputError(f"{path}: the field has values that are NaN or infinite")
    if meaning == _STEPS_RAS:
        return from_mm(vectors, grid, outside="edge")
    if meaning == _PLACES_RAS:
        return from_places(vectors, world(3), grid)
    if meaning == _STEPS_VOXELS:
        vectors += ops.identity(grid.shape)[0]
    return from_places(vectors, source, grid)


def write(path: Path, field: Displacement, moving: Grid, overwrite: bool) -> None:
    """Write a warp of relative scanner RAS.

    Raises:
        InputError: not of 3-D, or an existing file without ``overwrite``.
    """
    if field.ndim != 3 or moving.ndim != 3:
        raise InputError(f"{path}: FreeSurfer's warps are of 3-D images")
    vectors = field.displacement_mm().detach().cpu().float().numpy()
    header = struct.pack(">I6ih", _WARP << 8 | 1, *field.grid.shape, 3, _FLOAT, 1, 1)
    header += _placed(field.grid, sheared=False)
    both = (moving, field.grid)
    pages = [
        header.ljust(_HEADER, b"\0"),
        vectors.astype(">f4").transpose(0, 3, 2, 1).tobytes(),
        bytes(_SCAN),
        struct.pack(">i", _GEOMETRY),
        *(_described(grid, sheared=False) for grid in both),
        struct.pack(">iq", _SHEARED, 1200),
        *(_described(grid, sheared=True) for grid in both),
        struct.pack(">iqiif", _META, 12, _STEPS_RAS, 1, 0.0),
    ]
    content = b"".join(pages)
    with atomic_path(path, overwrite) as temporary:
        temporary.write_bytes(gzip.compress(content, 4) if path.name.lower().endswith("z") else content)


def _trailer(data: bytes) -> tuple[int, Grid, Grid]:
    """What the vectors mean, and the grids of the moving and of the fixed image."""
    meaning, grids, at = -1, None, 0
    while at + 4 <= len(data):
        (tag,) = struct.unpack_from(">i", data, at)
        at += 4
        if tag == 0:
            break
        if tag == _GEOMETRY:
            grids = grids or _both(data, at, sheared=False)
            at += 2 * _size(sheared=False)
            continue
        if tag in _UNMEASURED:
            raise ValueError(f"tag {tag} is not a warp's")
        (length,) = struct.unpack_from(">q", data, at)
        at += 8
        if length < 0:
            raise ValueError(f"tag {tag} of {length} bytes")
        if tag == _SHEARED:
            grids = _both(data, at, sheared=True)
        if tag == _META:
            (meaning,) = struct.unpack_from(">i", data, at)
        at += length
    if grids is None or not _PLACES_VOXELS <= meaning <= _STEPS_RAS:
        raise ValueError("it does not say what its vectors mean, or on which grids")
    return meaning, *grids


def _size(sheared: bool) -> int:
    """Bytes of a described grid: a flag, the shape, spacing, axes and centre, perhaps shear, and a name."""
    return 4 + 12 + 60 + (12 if sheared else 0) + 512


def _both(data: bytes, at: int, sheared: bool) -> tuple[Grid, Grid]:
    count = 18 if sheared else 15
    grids = []
    for start in (at, at + _size(sheared)):
        valid, *shape = struct.unpack_from(">4i", data, start)
        if not valid:
            raise ValueError("one of its two images has no geometry")
        numbers = torch.tensor(struct.unpack_from(f">{count}f", data, start + 16), dtype=torch.float64)
        steps = torch.diag(numbers[:3])
        if sheared:
            shear = torch.eye(3, dtype=torch.float64)
            shear[0, 1], shear[0, 2], shear[1, 2] = numbers[15:18]
            steps = steps @ shear
        affine = torch.eye(4, dtype=torch.float64)
        affine[:3, :3] = numbers[3:12].reshape(3, 3).T @ steps
        affine[:3, 3] = numbers[12:15] - affine[:3, :3] @ torch.tensor(shape, dtype=torch.float64) / 2
        grids.append(Grid(tuple(shape), affine))
    return grids[0], grids[1]


def _described(grid: Grid, sheared: bool) -> bytes:
    return struct.pack(">4i", 1, *grid.shape) + _placed(grid, sheared) + bytes(512)


def _placed(grid: Grid, sheared: bool) -> bytes:
    """Spacing, axes, centre, and as FreeSurfer takes them apart, shear: ``axes @ diag(spacing) @ upper triangle``."""
    linear = grid.affine[:3, :3]
    spacing, shear = linear.norm(dim=0), []
    axes = linear / spacing
    if sheared:
        turn, upper = torch.linalg.qr(linear)
        signs = torch.sign(torch.diagonal(upper))
        axes, upper = turn * signs, upper * signs[:, None]
        spacing = torch.diagonal(upper)
        shear = [upper[0, 1] / spacing[0], upper[0, 2] / spacing[0], upper[1, 2] / spacing[1]]
    centre = grid.to_world(torch.tensor(grid.shape) / 2)
    numbers = [*spacing, *axes.T.flatten(), *centre, *shear]
    return struct.pack(f">{len(numbers)}f", *(float(number) + 0.0 for number in numbers))  # no -0.0
