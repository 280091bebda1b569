"""FSL's warps, as FNIRT writes them: fields, and cubic spline coefficients.

``(X, Y, Z, 3)`` on the fixed image, in FSL's millimetres (:mod:`regnet.io.fsl_affine`): relative to the fixed place or
absolute in the moving image. Nothing in the file says which of the two; FSL's programs tell by which varies less, and
so do we. Intent 2006 is a field; 2007 are coefficients, one knot before the image first, with FLIRT's matrix in the
place of the sform, the knots' distance in voxels in that of the spacing. Source: FSL's wiki; fslpy's ``fnirt``.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from regnet.errors import InputError
from regnet.io import fsl_affine
from regnet.io.fields import from_places, open_nifti, places, vectors, write_vectors
from regnet.io.image import Image
from regnet.io.nifti import load_numbers
from regnet.spatial.composite import chain
from regnet.spatial.displacement import Displacement
from regnet.spatial.ffd import FFD
from regnet.spatial.grid import Grid
from regnet.spatial.transform import Transform

FIELD = 2006
SPLINES = 2007
OTHERS = {2008: "cosine coefficients", 2009: "quadratic spline coefficients"}


def read(path: Path, moving: Grid, fixed: Grid | None) -> Transform:
    """Read a warp.

    Args:
        path: NIfTI.
        moving: the image that it warps.
        fixed: the reference image; needed for coefficients alone.

    Raises:
        InputError: damaged, of another shape, of a kind that is not read, or without the images it needs.
    """
    image = open_nifti(path)
    intent = int(image.header["intent_code"])
    if intent in OTHERS:
        raise InputError(f"{path}: {OTHERS[intent]} are not read; make a field with FSL's fnirtfileutils first")
    if intent == SPLINES:
        if fixed is None:
            raise InputError(f"{path}: spline coefficients need the fixed image too; give it")
        return _from_splines(image, path, moving, fixed)
    components, grid = vectors(image, path)
    if grid.ndim != 3 or moving.ndim != 3:
        raise InputError(f"{path}: FSL's warps are of 3-D images")
    here = places(Displacement.identity(grid), fsl_affine.millimetres(grid))
    if _spread(components) <= _spread(components - here):
        components = components + here
    return from_places(components, fsl_affine.millimetres(moving), grid)


def write(path: Path, field: Displacement, moving: Grid, like: Image | Grid | None, overwrite: bool) -> None:
    """Write a field of relative displacements."""
    if field.ndim != 3 or moving.ndim != 3:
        raise InputError(f"{path}: FSL's warps are of 3-D images")
    here = places(Displacement.identity(field.grid), fsl_affine.millimetres(field.grid))
    relative = places(field, fsl_affine.millimetres(moving)) - here
    write_vectors(path, relative, field.grid, like, overwrite, (FIELD, 0.0, ""), flat=True)


def _from_splines(image: Any, path: Path, moving: Grid, fixed: Grid) -> Transform:
    header = image.header
    coefficients = torch.from_numpy(np.moveaxis(load_numbers(image, path, np.float32), -1, 0).copy())
    knots = [float(step) for step in header["pixdim"][1:4]]
    size = tuple(float(header[f"qoffset_{axis}"]) for axis in "xyz")
    spacing = [float(header[f"intent_p{number}"]) for number in (1, 2, 3)]
    if min(knots) <= 0 or not np.isfinite(knots).all():
        raise InputError(f"{path}: knots {_times(knots)} voxels apart make no sense")
    if coefficients.ndim != 4 or coefficients.shape[0] != 3 or not bool(torch.isfinite(coefficients).all()):
        raise InputError(f"{path}: finite coefficients of the shape (X, Y, Z, 3) are needed")
    if size != fixed.shape or not np.allclose(spacing, fixed.spacing, rtol=1e-3):
        raise InputError(
            f"{path}: is of a fixed image of {_times(size)} voxels of {_times(spacing)} mm, "
            f"not of {_times(fixed.shape)} of {_times(fixed.spacing)} mm"
        )
    matrix = torch.from_numpy(header.get_sform())
    first = fsl_affine.to_world(matrix, path, moving, fixed)
    # FNIRT takes x to M^-1 x + d(x), which is M^-1 (x + M d(x)).
    to_voxel = torch.linalg.solve(fixed.affine, fsl_affine.millimetres(fixed).affine) @ matrix
    control = torch.tensordot(to_voxel[:-1, :-1].float(), coefficients, dims=1)
    # FNIRT leaves out a last knot whose weight is 0 everywhere.
    more = [int((n - 1) // k + 4 > have) for n, k, have in zip(size, knots, control.shape[1:], strict=True)]
    control = functional.pad(control, [end for count in reversed(more) for end in (0, count)])
    try:
        return chain([FFD(control, fixed, knots), first])
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error


def _times(numbers: Sequence[float]) -> str:
    return " x ".join(f"{number:g}" for number in numbers)


def _spread(field: torch.Tensor) -> float:
    """The standard deviations of the components, added."""
    return float(field.double().flatten(1).std(dim=1).sum())
