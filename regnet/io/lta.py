"""FreeSurfer's linear transforms: ``.lta``, a text file.

A matrix from the source (moving) to the destination (fixed) image, between their voxels (type 0) or between scanner RAS
(type 1), and the geometry of both images. Source: FreeSurfer's wiki; nitransforms and surfa read the same.
"""

import re
from pathlib import Path

import torch
from torch import Tensor

from regnet.errors import InputError
from regnet.spatial.affine import Affine
from regnet.spatial.grid import Grid

SUFFIXES = (".lta",)
_VOXELS, _RAS = 0, 1
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


def read(path: Path) -> Affine:
    """Read the map fixed -> moving, RAS mm.

    Raises:
        InputError: another file, another type, several matrices, or a type that needs geometry the file has not.
    """
    try:
        text = re.sub(r"#.*", "", path.read_text(encoding="utf-8", errors="replace"))
        kind, count = _value(text, "type"), _value(text, "nxforms")
        if kind not in (_VOXELS, _RAS) or count != 1:
            raise ValueError(f"{count:g} matrices of type {kind:g}; one of type 0 (voxels) or 1 (RAS) is needed")
        matrix = _numbers(text, r"1\s+4\s+4\s", 16).reshape(4, 4)
        if kind == _VOXELS:
            source, _, destination = text.partition("dst volume info")
            matrix = _geometry(destination) @ matrix @ torch.linalg.inv(_geometry(source))
        matrix[-1] = torch.tensor([0.0, 0, 0, 1])
        return Affine(torch.linalg.inv(matrix))
    except (ValueError, RuntimeError, OSError) as error:
        raise InputError(f"{path}: not a FreeSurfer transform we can use ({' '.join(str(error).split())})") from error


def write(path: Path, transform: Affine, moving: Grid, fixed: Grid) -> None:
    """Write the map as type 1.

    Raises:
        InputError: not of 3-D.
    """
    if transform.ndim != 3:
        raise InputError(f"{path}: FreeSurfer's transforms are of 3-D images")
    matrix = torch.linalg.inv(transform.matrix)
    lines = [
        "# written by regnet: source (moving) to destination (fixed)",
        "type      = 1 # LINEAR_RAS_TO_RAS",
        "nxforms   = 1",
        "mean      = 0.0000 0.0000 0.0000",
        "sigma     = 1.0000",
        "1 4 4",
        *(_words(row) for row in matrix),
        "src volume info",
        *_describe(moving),
        "dst volume info",
        *_describe(fixed),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _value(text: str, key: str) -> float:
    return float(_numbers(text, rf"{key}\s*=\s*", 1))


def _numbers(text: str, before: str, count: int) -> Tensor:
    found = re.search(rf"(?:^|\n)\s*{before}\s*((?:{_NUMBER}\s+){{{count - 1}}}{_NUMBER})", text)
    if not found:
        raise ValueError(f"nothing like {before!r} and {count} numbers")
    values = torch.tensor([float(word) for word in found.group(1).split()], dtype=torch.float64)
    if not bool(torch.isfinite(values).all()):
        raise ValueError("numbers that are not finite")
    return values


def _geometry(text: str) -> Tensor:
    """The affine of a "volume info", voxel -> scanner RAS."""
    if _value(text, "valid") != 1:
        raise ValueError("a matrix between voxels, and no valid geometry of both images")
    steps = [_numbers(text, rf"{axis}ras\s*=\s*", 3) for axis in "xyz"]
    affine = torch.eye(4, dtype=torch.float64)
    affine[:3, :3] = torch.stack(steps, 1) * _numbers(text, r"voxelsize\s*=\s*", 3)
    affine[:3, 3] = _numbers(text, r"cras\s*=\s*", 3) - affine[:3, :3] @ _numbers(text, r"volume\s*=\s*", 3) / 2
    return affine


def _describe(grid: Grid) -> list[str]:
    spacing = torch.tensor(grid.spacing, dtype=torch.float64)
    axes = grid.affine[:3, :3] / spacing
    centre = grid.to_world(torch.tensor(grid.shape) / 2)
    return [
        "valid = 1  # volume info valid",
        "filename = unknown",
        f"volume = {' '.join(map(str, grid.shape))}",
        f"voxelsize = {_words(spacing)}",
        *(f"{name}ras   = {_words(axes[:, axis])}" for axis, name in enumerate("xyz")),
        f"cras   = {_words(centre)}",
    ]


def _words(values: Tensor) -> str:
    return " ".join(f"{value:.15e}" for value in values.tolist())
