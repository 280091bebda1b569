"""What there is to know of one file of a study."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from regnet.errors import InputError
from regnet.io.image import read_image, read_labels
from regnet.io.points import read_points
from regnet.spatial.grid import Grid

KINDS = ("image", "labels", "mask", "points")


@dataclass(frozen=True)
class Facts:
    """One file, read once.

    Attributes:
        path: of the file.
        kind: one of :data:`KINDS`: as what it was read.
        error: why it cannot be used, empty if it can; all else is then as here.
        grid: where the voxels lie.
        digest: of the numbers and where they lie, whatever the file's compression and type.
        low, high, mean: of the finite numbers.
        bad: how many are NaN or infinite.
        values: labels, without 0.
        count: of points.
    """

    path: Path
    kind: str
    error: str = ""
    grid: Grid | None = None
    digest: str = ""
    low: float = 0.0
    high: float = 0.0
    mean: float = 0.0
    bad: int = 0
    values: tuple[int, ...] = ()
    count: int = 0

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        found: dict[str, object] = {"kind": self.kind}
        if self.error:
            return found | {"error": self.error}
        if self.kind == "points":
            return found | {"points": self.count}
        assert self.grid is not None
        found |= {
            "shape": list(self.grid.shape),
            "spacing": [round(step, 4) for step in self.grid.spacing],
            "orientation": self.grid.orientation,
            "low": self.low,
            "high": self.high,
            "mean": self.mean,
            "not_finite": self.bad,
            "digest": self.digest,
        }
        return found | ({"labels": list(self.values)} if self.kind == "labels" else {})


def inspect(path: Path, kind: str) -> Facts:
    """Read a file and say what it holds; what is wrong with it is in ``error``."""
    try:
        if kind == "points":
            return Facts(path, kind, count=_count(path))
        image = read_labels(path) if kind == "labels" else read_image(path)
    except (InputError, OSError, MemoryError) as error:
        return Facts(path, kind, error=str(error).removeprefix(f"{path}: ") or type(error).__name__)
    values = tuple(int(v) for v in torch.unique(image.data).tolist() if v) if kind == "labels" else ()
    finite = image.data[image.data.isfinite()] if image.data.is_floating_point() else image.data
    known = finite.numel() > 0
    return Facts(
        path,
        kind,
        grid=image.grid,
        digest=_digest(image.data, image.grid),
        low=float(finite.min()) if known else 0.0,
        high=float(finite.max()) if known else 0.0,
        mean=float(finite.double().mean()) if known else 0.0,
        bad=image.data.numel() - finite.numel(),
        values=values,
    )


def _count(path: Path) -> int:
    try:
        return len(read_points(path).coordinates)
    except InputError:
        return len(read_points(path, "voxel").coordinates)  # whose space only the configuration says


def _digest(data: Tensor, grid: Grid) -> str:
    digest = hashlib.blake2b(data.contiguous().numpy().data, digest_size=16)
    digest.update(repr((grid.shape, [round(x, 3) for x in grid.affine.flatten().tolist()])).encode())
    return digest.hexdigest()
