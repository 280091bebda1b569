"""ITK's transforms as it keeps them in files: a type, parameters and fixed parameters; LPS millimetres, float64.

RAS becomes LPS, and back, in this file alone: the first two world axes turn.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regnet.errors import InputError
from regnet.io.itk_linear import matrix_of
from regnet.spatial.affine import Affine
from regnet.spatial.composite import Composite, chain
from regnet.spatial.displacement import Displacement
from regnet.spatial.grid import Grid, orthogonal
from regnet.spatial.transform import Transform

COMPOSITE = "CompositeTransform"
FIELD = "DisplacementFieldTransform"


@dataclass(frozen=True, eq=False)
class Record:
    """One transform of a file.

    Args:
        kind: ITK's name of the class, such as ``AffineTransform_double_3_3``.
        parameters, fixed: its numbers; :data:`FIELD` may keep its own as float32.
    """

    kind: str
    parameters: np.ndarray
    fixed: np.ndarray

    @property
    def name(self) -> str:
        """The class without precision and dimension."""
        return self.kind.split("_")[0]

    @property
    def ndim(self) -> int:
        """The dimension of its input."""
        words = self.kind.split("_")
        if len(words) != 4 or words[2] != words[3] or words[2] not in ("2", "3"):
            raise ValueError(f"{self.kind!r} is no transform of 2-D or 3-D space")
        return int(words[2])


def from_records(records: Sequence[Record], path: object) -> Transform:
    """The map that the transforms of a file make: the last of them takes a point first.

    Raises:
        InputError: none, of a kind that is not known, or with numbers that do not fit.
    """
    parts = [record for record in records if record.name != COMPOSITE]
    if not parts:
        raise InputError(f"{path}: holds no transform")
    try:
        return chain([_from_record(record) for record in reversed(parts)])
    except (ValueError, OverflowError) as error:
        raise InputError(f"{path}: {error}") from error


def to_records(transform: Transform, like: Grid | None = None) -> list[Record]:
    """The transforms that a file needs, the last of them taking a point first.

    Args:
        transform: maps that are no field and no matrix are sampled on their own grid.
        like: where to sample those that have none, and instead of grids that ITK cannot hold.
    """
    if isinstance(transform, Composite):
        return [record for part in reversed(transform.parts) for record in to_records(part, like)]
    ndim = transform.ndim
    if isinstance(transform, Affine):
        lps = flip(ndim)[:, None] * transform.matrix[:-1].numpy() * np.append(flip(ndim), 1.0)
        numbers = np.concatenate([lps[:, :-1].ravel(), lps[:, -1]])
        return [Record(f"AffineTransform_double_{ndim}_{ndim}", numbers, np.zeros(ndim))]
    grid = transform.home or like
    if grid is None:
        raise InputError("this transform has no grid of its own: say on which image's grid it is wanted")
    field = transform.on(upright(grid, "ITK"))
    axes = field.grid.affine.numpy()[:-1] * flip(ndim)[:, None]
    spacing = np.array(field.grid.spacing)
    fixed = np.concatenate([field.grid.shape, axes[:, -1], spacing, (axes[:, :-1] / spacing).ravel()])
    lps = to_lps(field.displacement_mm()).numpy()
    # ITK runs through the first axis fastest, and through the components before all axes.
    numbers = np.transpose(lps, (*range(ndim, 0, -1), 0)).ravel()
    return [Record(f"{FIELD}_double_{ndim}_{ndim}", numbers, fixed)]


def upright(grid: Grid, name: object) -> Grid:
    """The grid itself, or where it is sheared, which ITK cannot hold, an upright one; a warning says so."""
    straight = orthogonal(grid)
    if straight != grid:
        warnings.warn(
            f"{name}: its grid is sheared, which ITK does not read; the same map is written on an upright grid of "
            f"{' x '.join(map(str, straight.shape))}",
            stacklevel=2,
        )
    return straight


def flip(ndim: int) -> np.ndarray:
    """The signs between RAS and LPS."""
    return np.array([-1.0, -1.0, 1.0])[:ndim]


def to_lps(ras: Tensor) -> Tensor:
    """Vectors ``(D, ...)``, RAS -> LPS or back, as a new float32 tensor on the CPU."""
    lps = ras.detach().to("cpu", torch.float32).clone()
    lps[:2] *= -1
    return lps


def _from_record(record: Record) -> Transform:
    ndim = record.ndim
    if record.name == FIELD:
        return _from_field(record)
    linear, shift, centre = matrix_of(record.name, ndim, record.parameters, record.fixed)
    matrix = np.eye(ndim + 1)
    matrix[:-1, :-1] = linear
    matrix[:-1, -1] = shift + centre - linear @ centre
    signs = np.append(flip(ndim), 1.0)
    return Affine(torch.from_numpy(signs[:, None] * matrix * signs))


def _from_field(record: Record) -> Displacement:
    ndim, fixed = record.ndim, np.asarray(record.fixed, dtype=np.float64)
    if fixed.size != ndim * (3 + ndim) or not np.isfinite(fixed).all():
        raise ValueError(f"a displacement field needs {ndim * (3 + ndim)} finite fixed parameters, got {fixed.size}")
    shape = tuple(int(n) for n in fixed[:ndim])
    affine = np.eye(ndim + 1)
    affine[:-1, :-1] = fixed[3 * ndim :].reshape(ndim, ndim) * fixed[2 * ndim : 3 * ndim] * flip(ndim)[:, None]
    affine[:-1, -1] = fixed[ndim : 2 * ndim] * flip(ndim)
    grid = Grid(shape, torch.from_numpy(affine))
    if record.parameters.size != grid.voxels * ndim:
        raise ValueError(f"a field of {shape} voxels needs {grid.voxels * ndim} numbers, got {record.parameters.size}")
    if not np.isfinite(record.parameters).all():
        raise ValueError("the displacement field has values that are NaN or infinite")
    lps = record.parameters.reshape(*reversed(shape), ndim).transpose(ndim, *range(ndim - 1, -1, -1))
    ras = to_lps(torch.from_numpy(np.ascontiguousarray(lps, dtype=np.float32)))
    to_voxel = torch.linalg.inv(grid.affine[:-1, :-1]).float()
    return Displacement(torch.tensordot(to_voxel, ras, dims=1), grid, outside="identity")
