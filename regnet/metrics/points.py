"""Landmarks: how far mapped ones are from where they should be, and where a field carries them."""

from torch import Tensor

from regnet import ops


def target_registration_error(mapped: Tensor, truth: Tensor) -> Tensor:
    """Distance of every landmark to its counterpart.

    Args:
        mapped: ``(n, D)``, mm: the landmarks of the fixed image, carried into the moving image by the map itself; or
            those of the moving image, carried into the fixed one by its inverse.
        truth: ``(n, D)``, mm: where they are in that image, in the same order and the same axes.

    Returns:
        ``(n,)``, mm, float64.

    Raises:
        ValueError: the shapes differ.
    """
    if mapped.shape != truth.shape or mapped.dim() != 2:
        raise ValueError(f"landmarks must come in pairs, (n, D): got {tuple(mapped.shape)} and {tuple(truth.shape)}")
    return (mapped.double() - truth.double()).norm(dim=1)


def map_voxels(flow: Tensor, points: Tensor, order: int = 3) -> Tensor:
    """Carry points along a field.

    Args:
        flow: ``(1, D, *spatial)``, voxels.
        points: ``(n, D)``, voxels of the field's grid; they need not be whole.
        order: of the spline between the field's voxels. Learn2Reg takes 3, ITK 1. Beyond the grid the field goes on as
            at its edge (order 1) or is mirrored about it.

    Returns:
        ``(n, D)``, voxels, float64: ``p + flow(p)``.

    Raises:
        ValueError: the field is of several pairs, or the points have another number of axes.
    """
    ndim = flow.shape[1]
    if len(flow) != 1:
        raise ValueError(f"flow must be of one pair, (1, D, *spatial): got {tuple(flow.shape)}")
    if points.dim() != 2 or points.shape[1] != ndim:
        raise ValueError(f"points must be (n, {ndim}) for a field of {ndim} axes: got {tuple(points.shape)}")
    bound = "replicate" if order < 2 else "dct1"
    coordinates = points.double().T.reshape(1, ndim, *(1,) * (ndim - 1), -1)
    shift = ops.pull(ops.prefilter(flow, order, bound), coordinates, order, bound)
    return points.double() + shift.reshape(ndim, -1).T.double()
