"""``torch.nn.functional.grid_sample`` and its adjoint: the only place where torch's conventions hold.

A grid is ``(N, *out, D)``, its last axis in the order (x, y, z), that is the last spatial axis first, and normalised:
-1 and 1 are the centres of the first and the last voxel (``align_corners``), or their outer faces.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from regnet.ops import _check, _families
from regnet.ops._how import How
from regnet.ops.options import KEYS, bound_codes, extrapolate_code

_ORDERS = {"bilinear": 1, "nearest": 0, "bicubic": KEYS}
_BOUNDS = {"zeros": "zero", "border": "replicate"}
_PADDINGS = (*_BOUNDS, "reflection")


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False
) -> Tensor:
    """Sample an image where a normalised grid says, as ``torch.nn.functional.grid_sample``.

    Beside what torch has: 1-D, bicubic in 1-D and 3-D (the product of the kernels along the axes), second derivatives
    and forward mode in every mode, and one volume on all threads.

    Args:
        input: ``(N, C, *in)``, 1 to 3 spatial axes.
        grid: ``(N, *out, D)``, normalised, (x, y, z).
        mode: "bilinear" (linear along every axis), "nearest" (ties to the even voxel; the gradient in ``grid`` is 0) or
            "bicubic" (Keys' kernel with a = -0.75).
        padding_mode: what is outside: "zeros", "border" (the nearest voxel) or "reflection" (about the outer faces,
            or about the outer centres with ``align_corners``).
        align_corners: whether -1 and 1 are the outer voxels' centres (True) or faces (False).

    Returns:
        ``(N, C, *out)``, of the type of ``input``. Unlike torch's: NaN where a coordinate is NaN, and 0 where one is
        beyond 2**30 voxels, in every mode; the gradients are 0 there.

    Raises:
        ValueError: shapes, types, devices or words that do not fit.

    Source:
        Keys, IEEE TASSP 1981.
    """
    ndim = _ndim(grid)
    _check.image("input", input, ndim)
    dtype = _common("input", input, grid)
    _check.voxels("input", input.shape[2:], grid)
    how = _how(mode, padding_mode, align_corners, ndim)
    coords, matrix = _voxels(grid.to(dtype), input.shape[2:], mode, padding_mode, align_corners)
    out = _families.sample(input.to(dtype), coords, matrix, 0, how).to(input.dtype)
    return _depending(out, grid) if mode == "nearest" else out


def grid_sample_adjoint(
    y: Tensor,
    grid: Tensor,
    shape: Sequence[int],
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Tensor:
    """The adjoint of :func:`grid_sample` in its input: ``<grid_sample(x), y> = <x, grid_sample_adjoint(y)>``.

    Args:
        y: ``(N, C, *out)``.
        grid: ``(N, *out, D)``, as are ``mode``, ``padding_mode`` and ``align_corners``.
        shape: of the input: its D spatial sizes, or all of ``(N, C, *in)``.

    Returns:
        ``(N, C, *in)``, of the type of ``y``; differentiable in ``y`` and ``grid``. The same bits for any number of
        threads.

    Raises:
        ValueError: shapes, types, devices or words that do not fit.
    """
    ndim = _ndim(grid)
    _check.image("y", y, ndim)
    dtype = _common("y", y, grid)
    if y.shape[2:] != grid.shape[1:-1]:
        raise ValueError(f"y and grid must have the same spatial shape, got {tuple(y.shape)} and {tuple(grid.shape)}")
    if isinstance(shape, Sequence) and len(shape) == ndim + 2:
        if tuple(shape[:2]) != tuple(y.shape[:2]):
            raise ValueError(f"shape must begin with y's batch and channels {tuple(y.shape[:2])}, got {tuple(shape)}")
        shape = shape[2:]
    sizes = _check.shape("shape", shape, ndim)
    _check.voxels("the target", sizes, y)
    how = _how(mode, padding_mode, align_corners, ndim)
    coords, matrix = _voxels(grid.to(dtype), sizes, mode, padding_mode, align_corners)
    out = _families.scatter(y.to(dtype), coords, matrix, sizes, 0, how).to(y.dtype)
    return _depending(out, grid) if mode == "nearest" else out


def _how(mode: str, padding_mode: str, align_corners: bool, ndim: int) -> How:
    if mode not in tuple(_ORDERS):
        raise ValueError(f"mode must be one of {', '.join(_ORDERS)}, got {mode!r}")
    if padding_mode not in _PADDINGS:
        raise ValueError(f"padding_mode must be one of {', '.join(_PADDINGS)}, got {padding_mode!r}")
    bound = _BOUNDS.get(padding_mode, "dct1" if align_corners else "dct2")
    return How(False, [_ORDERS[mode]] * ndim, bound_codes(bound, ndim), extrapolate_code(True))


def _voxels(
    grid: Tensor, sizes: Sequence[int], mode: str, padding_mode: str, align_corners: bool
) -> tuple[Tensor, Tensor | None]:
    """Coordinates and the matrix that takes them to voxels: an affine map, so that no second grid is made.

    Nearest rounds, and so that the ties are torch's too it does so in torch's own steps.
    """
    ndim = len(sizes)
    if mode == "nearest":
        axes = zip(grid.detach().unbind(-1)[::-1], sizes, strict=True)
        return torch.stack([_nearest(g, n, padding_mode, align_corners) for g, n in axes], 1), None
    rows = []
    for d, n in enumerate(sizes):
        row = [0.0] * (ndim + 1)
        row[ndim - 1 - d] = (n - 1) / 2 if align_corners else n / 2
        row[ndim] = (n - 1) / 2
        rows.append(row)
    matrix = torch.tensor([rows], dtype=grid.dtype, device=grid.device)
    return grid.movedim(-1, 1), matrix.expand(len(grid), ndim, ndim + 1)


def _nearest(g: Tensor, n: int, padding_mode: str, align_corners: bool) -> Tensor:
    if align_corners:
        return (g + 1).div_(2).mul_(n - 1).round_()
    x = (g + 1).mul_(n).sub_(1).div_(2)
    if padding_mode == "reflection":  # turns odd voxels into even ones, so it comes first
        x = torch.where(x.abs() < 2**30, n - 0.5 - ((x + 0.5).remainder(2 * n) - n).abs(), x)
    return x.round_()


def _depending(out: Tensor, grid: Tensor) -> Tensor:
    """The same, with a gradient of zeros in ``grid``."""
    return out + grid[:0].sum().to(out.dtype)


def _ndim(grid: Tensor) -> int:
    _check.floating("grid", grid)
    if not 3 <= grid.ndim <= 5 or grid.shape[-1] != grid.ndim - 2:
        raise ValueError(
            f"grid must be (N, *spatial, D), one coordinate per spatial axis, 1 to 3 of them, got {tuple(grid.shape)}"
        )
    return grid.ndim - 2


def _common(name: str, tensor: Tensor, grid: Tensor) -> torch.dtype:
    """The type of computation of two tensors of one batch."""
    _, dtype = _check.together(**{name: tensor, "grid": grid})
    if len(tensor) != len(grid):  # torch does not broadcast them
        raise ValueError(f"{name} and grid must have one batch size, got {tuple(tensor.shape)} and {tuple(grid.shape)}")
    return dtype
