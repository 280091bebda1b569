"""Non-diffeomorphic volume: how much of the map's image is turned inside out, whatever differences one looks at."""

import itertools
from collections.abc import Iterator

import torch
from torch import Tensor

from regnet.metrics._mask import check_mask, inside, wide
from regnet.metrics._slabs import slabs
from regnet.ops.jacobian import determinant


def non_diffeomorphic_volume(flow: Tensor, mask: Tensor | None = None) -> float:
    """Volume of the pieces that the map turns over, over the volume of the mask.

    Central differences can miss a fold (a checkerboard has none). Here each cell between eight voxel centres is cut
    into five tetrahedra, in both ways that there are, and the map is linear on each. A piece with a negative
    determinant counts with its volume. In terms of a voxel: the eight determinants of one-sided differences, a sixth
    of a cell each, and two of differences along the diagonals of faces (each twice as large in the identity), all
    halved since two ways of cutting are averaged. In 2-D a square is cut into two triangles: four determinants, half a
    cell each.

    Args:
        flow: ``(N, D, *spatial)``, voxels, on the fixed grid, D 2 or 3. Beyond the grid it goes on as at its edge.
        mask: ``(N or 1, 1, *spatial)``, fixed image; voxels with a value above 0 count. None: the whole grid.

    Returns:
        In units of the mask's volume, 0 for a map without folds, 1 for a mirror image; NaN if the mask is empty.

    Raises:
        ValueError: ``flow`` is not 2-D or 3-D, or ``mask`` does not fit.

    Source:
        Liu et al., International Journal of Computer Vision 2024 (arXiv 2212.06060). LUMIR's script takes the moving
        image as the mask; that mask does not lie on this grid.
    """
    ndim = flow.dim() - 2
    if ndim not in (2, 3) or flow.shape[1] != ndim:
        raise ValueError(f"flow must be (N, D, *spatial) with D 2 or 3 channels: got {tuple(flow.shape)}")
    check_mask(mask, flow)
    lost, voxels = 0.0, 0
    for start, stop, low, high in slabs(flow):
        padded = _padded(flow.detach()[:, :, low:high], start == low, stop == high)
        volume = inside(_turned(padded), None if mask is None else mask[:, :, start:stop])
        lost, voxels = lost + float(volume.double().sum()), voxels + volume.numel()
    return lost / voxels if voxels else float("nan")


def _padded(flow: Tensor, first: bool, last: bool) -> Tensor:
    """A field with one voxel more on every side, as at its edge; along its first axis only where it ends there."""
    sides = (1, 1) * (flow.dim() - 3) + (int(first), int(last))
    return torch.nn.functional.pad(wide(flow), sides, "replicate")


def _turned(flow: Tensor) -> Tensor:
    """Volume turned over at each inner voxel of a padded field, ``(N, 1, *inner)``, in voxels."""
    volume = torch.zeros_like(_at(flow, (0,) * (flow.dim() - 2))[:, :1])
    for columns, weight in _corners(flow):
        lost = determinant([[column[:, i] for column in columns] for i in range(len(columns))])
        volume -= weight * lost.clamp_(max=0)[:, None]
    return volume


def _corners(flow: Tensor) -> Iterator[tuple[list[Tensor], float]]:
    """Columns of every Jacobian, each ``(N, D, *inner)``, and the weight of its determinant."""
    ndim = flow.dim() - 2
    ahead = [_difference(flow, _unit(ndim, axis, 1)) for axis in range(ndim)]
    behind = [_difference(flow, _unit(ndim, axis, -1)).neg_() for axis in range(ndim)]
    for signs in itertools.product((True, False), repeat=ndim):
        yield [a if sign else b for sign, a, b in zip(signs, ahead, behind, strict=True)], 0.5 / (2, 6)[ndim - 2]
    if ndim == 3:
        for sign in (1, -1):
            xy, xz, yz = ((sign, sign, 0), (sign, 0, sign), (0, sign, sign))
            order = (xy, yz, xz) if sign > 0 else (xy, xz, yz)  # so that the identity's determinant is 2
            yield [_difference(flow, step) for step in order], 0.5 / 6


def _difference(flow: Tensor, step: tuple[int, ...]) -> Tensor:
    """What the map changes by along ``step``, identity included."""
    difference = _at(flow, step) - _at(flow, (0,) * len(step))
    for axis, length in enumerate(step):
        difference[:, axis] += length
    return difference


def _at(flow: Tensor, step: tuple[int, ...]) -> Tensor:
    """The inner voxels of a padded field, shifted."""
    inner = (slice(1 + s, n - 1 + s) for s, n in zip(step, flow.shape[2:], strict=True))
    where = (slice(None), slice(None), *inner)
    return flow[where]


def _unit(ndim: int, axis: int, sign: int) -> tuple[int, ...]:
    return tuple(sign if other == axis else 0 for other in range(ndim))
