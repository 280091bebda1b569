"""Regularity of a map, from its Jacobian determinant.

The determinant is that of the map p -> p + flow(p) from the fixed into the moving image: identity included, central
differences, one-sided on the faces. It is a ratio of volumes, moving over fixed: **below 1 the structure was enlarged**
on its way from the moving into the fixed image, above 1 it was shrunk; at 0 and below the map folds. Both figures here
are the same whether or not an affine map (without mirroring) comes on top.
"""

from torch import Tensor

from regnet import ops
from regnet.metrics._mask import inside


def folding_fraction(flow: Tensor, mask: Tensor | None = None) -> float:
    """Fraction of voxels at which the map folds: determinant <= 0.

    Args:
        flow: ``(N, D, *spatial)``, voxels, on the fixed grid.
        mask: ``(N or 1, 1, *spatial)``; voxels with a value above 0 count. None: all of the grid, which flatters, since
            a brain is a fifth of its grid.

    Returns:
        In [0, 1]; NaN if the mask is empty.

    Raises:
        ValueError: ``mask`` does not fit ``flow``.
    """
    return _folding(ops.jacobian_determinant(flow), mask)


def sdlogj(flow: Tensor, mask: Tensor | None = None, offset: float = 0.0) -> float:
    """Standard deviation of the logarithm of the Jacobian determinant.

    Args:
        flow: ``(N, D, *spatial)``, voxels, on the fixed grid.
        mask: ``(N or 1, 1, *spatial)``; voxels with a value above 0 count.
        offset: added to the determinant. Learn2Reg and the papers that copy its script add 3, which makes the figure
            some four times smaller; use 3 to compare with them (they also leave two voxels out at each face).

    Returns:
        Population standard deviation; NaN if the mask is empty.

    Raises:
        ValueError: ``mask`` does not fit ``flow``.

    Source:
        Leow et al., IEEE Transactions on Medical Imaging 2007; https://github.com/MDL-UzL/L2R
    """
    return _deviation(log_jacobian_determinant(flow, offset), mask)


def jacobian_statistics(flow: Tensor, *masks: Tensor | None) -> list[dict[str, float]]:
    """:func:`folding_fraction` and :func:`sdlogj` inside several masks, from one computation of the determinant.

    Returns:
        For each mask ``folding`` and ``sdlogj``.
    """
    determinant = ops.jacobian_determinant(flow)
    logarithm = _logarithm(determinant)
    return [{"folding": _folding(determinant, mask), "sdlogj": _deviation(logarithm, mask)} for mask in masks]


def log_jacobian_determinant(flow: Tensor, offset: float = 0.0) -> Tensor:
    """Logarithm of the Jacobian determinant, clipped to [1e-9, 1e9] first so that folds stay finite.

    Args:
        flow: ``(N, D, *spatial)``, voxels, on the fixed grid.
        offset: added to the determinant before clipping.

    Returns:
        ``(N, 1, *spatial)``; negative where a structure of the moving image was enlarged.
    """
    return _logarithm(ops.jacobian_determinant(flow) + offset)


def _logarithm(determinant: Tensor) -> Tensor:
    return determinant.clamp(1e-9, 1e9).log_()


def _folding(determinant: Tensor, mask: Tensor | None) -> float:
    return float((inside(determinant, mask) <= 0).double().mean())


def _deviation(logarithm: Tensor, mask: Tensor | None) -> float:
    return float(inside(logarithm, mask).double().std(correction=0))
