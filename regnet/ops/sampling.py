"""Sample an image at coordinates, its derivatives, and the adjoints."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regnet.ops import _check, _families
from regnet.ops._how import How
from regnet.ops.options import Bound, Extrapolate, Order, derivable


def pull(
    coeff: Tensor, coords: Tensor, order: Order = 1, bound: Bound = "dct2", extrapolate: Extrapolate = True
) -> Tensor:
    """Sample a spline at coordinates.

    Args:
        coeff: ``(N, C, *in)`` spline coefficients (``prefilter(image)``; the image itself for orders 0 and 1).
        coords: ``(N, D, *out)`` where to sample, in voxels of ``coeff``; channel ``d`` lies along spatial axis ``d``.
        order: spline order 0 to 7, one or one per axis.
        bound: how the signal continues outside its grid: zero, replicate, dct1, dct2, dst1, dst2 or dft (or an alias
            such as border, mirror, reflect, wrap), one or one per axis.
        extrapolate: True: the bound fills everything; "center" (or False): a sample counts while
            ``-0.05 <= x <= n - 0.95`` on every axis; "edge": while ``-0.55 <= x <= n - 0.45``. Outside, the value and
            both gradients are 0. A NaN coordinate gives NaN, an infinite one (or above 2**30) 0; both have gradient 0.
            A NaN in ``coeff`` spreads to every sample that has a tap there, be its weight 0.

    Returns:
        ``(N, C, *out)``, of the type of ``coeff``; computed in float64 if either input is, else in float32.

    Raises:
        ValueError: shapes, types, devices or words that do not fit.
        RuntimeError: in the backward, if the coordinates need a gradient and an order is 0.

    Source:
        Unser, IEEE Signal Processing Magazine 1999; Thevenaz et al., IEEE TMI 2000.
    """
    return _sample(coeff, coords, 0, order, bound, extrapolate)


def grad(
    coeff: Tensor, coords: Tensor, order: Order = 1, bound: Bound = "dct2", extrapolate: Extrapolate = True
) -> Tensor:
    """First derivatives of a spline at coordinates.

    Arguments as :func:`pull`; order 0 has no derivative and raises ``ValueError``.

    Returns:
        ``(N, C, D, *out)``, per voxel; entry ``d`` is the derivative along spatial axis ``d``.
    """
    return _sample(coeff, coords, 1, order, bound, extrapolate)


def hess(
    coeff: Tensor, coords: Tensor, order: Order = 3, bound: Bound = "dct2", extrapolate: Extrapolate = True
) -> Tensor:
    """Second derivatives of a spline at coordinates.

    Arguments as :func:`pull`; order 0 raises ``ValueError``. Order 1 has no curvature along one axis, so its pure
    second derivatives are 0 (almost everywhere).

    Returns:
        ``(N, C, D, D, *out)``, per voxel squared.
    """
    return _sample(coeff, coords, 2, order, bound, extrapolate)


def push(
    value: Tensor,
    coords: Tensor,
    shape: Sequence[int],
    order: Order = 1,
    bound: Bound = "dct2",
    extrapolate: Extrapolate = True,
) -> Tensor:
    """Scatter values into a grid: the adjoint of :func:`pull` in its coefficients.

    Args:
        value: ``(N, C, *out)``.
        coords: ``(N, D, *out)`` where each value goes, in voxels of the target.
        shape: D sizes of the target.
        order, bound, extrapolate: as :func:`pull`. What is out of view adds nothing.

    Returns:
        ``(N, C, *shape)``, of the type of ``value``. The same bits for any number of threads.

    Raises:
        ValueError: shapes, types, devices or words that do not fit.
    """
    ndim = _check.field("coords", coords)
    _check.image("value", value, ndim)
    if value.shape[2:] != coords.shape[2:]:
        raise ValueError(
            f"value and coords must have the same spatial shape, got {tuple(value.shape)} and {tuple(coords.shape)}"
        )
    sizes = _check.shape("shape", shape, ndim)
    batch, dtype = _check.together(value=value, coords=coords)
    how = How.of(False, ndim, order, bound, extrapolate)
    _check.voxels("the target", sizes, value)
    out = _families.scatter(ready(value, batch, dtype), ready(coords, batch, dtype), None, sizes, 0, how)
    return out.to(value.dtype)


def count(
    coords: Tensor, shape: Sequence[int], order: Order = 1, bound: Bound = "dct2", extrapolate: Extrapolate = True
) -> Tensor:
    """How much weight each voxel of a grid receives: :func:`push` of ones, ``(N, 1, *shape)``."""
    _check.field("coords", coords)
    return push(torch.ones_like(coords[:, :1]), coords, shape, order, bound, extrapolate)


def _sample(coeff: Tensor, coords: Tensor, k: int, order: Order, bound: Bound, extrapolate: Extrapolate) -> Tensor:
    ndim = _check.field("coords", coords)
    _check.image("coeff", coeff, ndim)
    batch, dtype = _check.together(coeff=coeff, coords=coords)
    how = How.of(False, ndim, order, bound, extrapolate)
    derivable(how.order, k)
    _check.voxels("coeff", coeff.shape[2:], coords)
    return _families.sample(ready(coeff, batch, dtype), ready(coords, batch, dtype), None, k, how).to(coeff.dtype)


def ready(tensor: Tensor, batch: int, dtype: torch.dtype) -> Tensor:
    """In the type of computation, broadcast along the batch without a copy."""
    tensor = tensor.to(dtype)
    return tensor if tensor.shape[0] == batch else tensor.expand(batch, *tensor.shape[1:])
