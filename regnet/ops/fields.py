"""Displacement and velocity fields: warp, compose, integrate."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regnet.ops import _check, _families
from regnet.ops._how import How
from regnet.ops._interpolate import interpolate
from regnet.ops.options import Bound, Extrapolate, Order
from regnet.ops.sampling import ready


def identity(
    shape: Sequence[int], *, dtype: torch.dtype = torch.float32, device: torch.device | str | None = None
) -> Tensor:
    """Voxel coordinates of every voxel, ``(1, D, *shape)``; channel ``d`` lies along spatial axis ``d``.

    Raises:
        ValueError: ``shape`` has not 1 to 3 sizes, or a negative one.
    """
    ndim = len(shape) if isinstance(shape, Sequence) else 0
    if not 1 <= ndim <= 3:
        raise ValueError(f"shape must have 1 to 3 sizes, got {shape!r}")
    _check.shape("shape", shape, ndim)
    axes = [torch.arange(n, dtype=dtype, device=device) for n in shape]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"))[None]


def warp(
    image: Tensor,
    flow: Tensor,
    order: Order = 1,
    bound: Bound = "dct2",
    extrapolate: Extrapolate = True,
    matrix: Tensor | None = None,
    prefilter: bool = True,
) -> Tensor:
    """Pull an image through a displacement field: ``out(p) = image(p + flow(p))``.

    The identity is added inside the kernel, in the type of computation; no grid is made.

    Args:
        image: ``(N, C, *in)``, the moving image.
        flow: ``(N, D, *out)`` displacement in voxels, on the fixed grid, pointing into the moving image.
        order, bound, extrapolate: as :func:`regnet.ops.pull`.
        matrix: ``(N, D, D + 1)``, from fixed to moving voxels: samples at ``matrix @ (p + flow(p), 1)``.
        prefilter: whether ``image`` holds samples (True) or already spline coefficients.

    Returns:
        ``(N, C, *out)``, of the type of ``image``.

    Raises:
        ValueError: shapes, types, devices or words that do not fit.
    """
    ndim = _check.field("flow", flow)
    _check.image("image", image, ndim)
    if matrix is not None:
        _check.affine("matrix", matrix, ndim)
    batch, dtype = _check.together(image=image, flow=flow, matrix=matrix)
    how = How.of(True, ndim, order, bound, extrapolate)
    _check.voxels("image", image.shape[2:], flow)
    affine = None if matrix is None else ready(matrix, batch, dtype)
    if prefilter and max(how.order) > 1:
        out = interpolate(image.to(dtype), ready(flow, batch, dtype), affine, how)
    else:
        out = _families.sample(ready(image, batch, dtype), ready(flow, batch, dtype), affine, 0, how)
    return out.to(image.dtype)


def compose(outer: Tensor, inner: Tensor, order: Order = 1, bound: Bound = "dct2") -> Tensor:
    """The displacement of "first inner, then outer": ``u(p) = inner(p) + outer(p + inner(p))``.

    Since fields pull, ``warp(warp(image, outer), inner) = warp(image, compose(outer, inner))``.

    Args:
        outer: ``(N, D, *spatial)``, voxels.
        inner: ``(N, D, *out)``, voxels.
        order, bound: how ``outer`` is interpolated and continues outside its grid.

    Returns:
        ``(N, D, *out)``, voxels; of the wider type of the two.

    Raises:
        ValueError: not fields of one dimension.
    """
    _check.field("outer", outer)
    _check.field("inner", inner)
    _, dtype = _check.together(outer=outer, inner=inner)
    first = inner.to(dtype)
    flow = warp(outer.to(dtype), first, order, bound).add_(first)  # nobody else holds what warp gave
    return flow.to(torch.promote_types(outer.dtype, inner.dtype))


def integrate(velocity: Tensor, steps: int = 7, order: Order = 1, bound: Bound = "dct2") -> Tensor:
    """Exponentiate a stationary velocity field by scaling and squaring.

    Args:
        velocity: ``(N, D, *spatial)``, voxels per unit time; channel ``d`` lies along spatial axis ``d``.
        steps: number of squarings; 0 means no integration. The error falls as ``2**-steps``.
        order, bound: how the field is interpolated and continues outside the grid.

    Returns:
        ``(N, D, *spatial)``, voxels: ``u`` such that a particle at ``x`` is at ``x + u(x)`` after time 1.

    Raises:
        ValueError: ``velocity`` has not one channel per spatial axis, or ``steps`` is negative.

    Source:
        Arsigny et al., MICCAI 2006.
    """
    _check.field("velocity", velocity)
    _check.count("steps", steps)
    How.of(True, velocity.ndim - 2, order, bound)  # even where there is no step
    _, dtype = _check.together(velocity=velocity)
    flow = velocity.to(dtype) * 0.5**steps
    for _ in range(steps):
        flow = compose(flow, flow, order, bound)
    return flow.to(velocity.dtype)
