"""Free-form deformation: a displacement field from a grid of control points."""

import math
import numbers
from collections.abc import Sequence

from torch import Tensor

from regnet.ops import _check
from regnet.ops._lattice import Ramps, lattice
from regnet.ops.options import BOUNDS


def ffd(control: Tensor, shape: Sequence[int], spacing: float | Sequence[float]) -> Tensor:
    """The field of cubic B-splines whose coefficients are the displacements of control points.

    ``u(p) = sum_k control[k] prod_d b3(p_d / s_d + 1 - k_d)``: control point ``k`` lies at voxel ``(k - 1) * s``, one
    spacing before the image for ``k = 0``. The field has two continuous derivatives; control points that move alike
    move everything alike, and ``control[k] = A ((k - 1) * s)`` gives ``u(p) = A p``.

    Args:
        control: ``(N, D, *grid)``, voxels; channel ``d`` lies along spatial axis ``d``. Points beyond those needed do
            nothing.
        shape: D sizes of the field.
        spacing: voxels between control points, any positive number (above 1e-9), one or one per axis.

    Returns:
        ``(N, D, *shape)``, voxels, of the type of ``control``; computed in float64 if it is, else in float32. The
        backward is the exact adjoint, with the same bits for any number of threads.

    Raises:
        ValueError: ``control`` has not one channel per spatial axis, or fewer than
            ``floor((shape - 1) / spacing) + 4`` points along one.

    Source:
        Rueckert et al., IEEE TMI 1999.
    """
    ndim = _check.field("control", control)
    _, dtype = _check.together(control=control)
    sizes = _check.shape("shape", shape, ndim)
    spacings = _check.per_axis(spacing, ndim, numbers.Real)
    if not spacings or not all(1e-9 < s < math.inf for s in spacings):
        raise ValueError(f"spacing must be finite and above 1e-9, one or {ndim} (one per axis), got {spacing!r}")
    needed = [math.floor((n - 1) / s) + 4 if n else 0 for n, s in zip(sizes, spacings, strict=True)]
    if any(have < want for have, want in zip(control.shape[2:], needed, strict=True)):
        raise ValueError(
            f"control must have at least {tuple(needed)} points along the axes, to cover {tuple(sizes)} voxels at a "
            f"spacing of {spacing!r}, got {tuple(control.shape[2:])}"
        )
    ramps = Ramps([float(s) for s in spacings], *[[1] * ndim] * 3)
    zero = BOUNDS.index("zero")  # beyond the last tap that counts, there may be no point
    return lattice(control, sizes, [3] * ndim, [zero] * ndim, ramps, False, dtype).to(control.dtype)
