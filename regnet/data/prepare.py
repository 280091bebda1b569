"""From an image file to a network's input: the one way in for training, registration, refinement and evaluation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, exp, sqrt

import torch
from torch import Tensor

from regnet.data.normalise import normalise
from regnet.data.spec import InputSpec
from regnet.errors import InputError
from regnet.io.image import Image, check_image
from regnet.spatial.affine import Affine
from regnet.spatial.grid import Grid, canonical, matrix
from regnet.spatial.resample import in_view, resample

_FOREGROUND = 0.05  # of the largest difference from the background
_MASKED = 0.01  # a voxel with a larger share of what a mask leaves out does not count


@dataclass(frozen=True)
class Prepared:
    """An image as a network sees it.

    Attributes:
        data: ``(1, C, *spatial)`` float32 on ``grid``, normalised.
        view: ``(1, 1, *spatial)`` float32, 1 where the image's own field of view reaches.
        grid: where the voxels are.
    """

    data: Tensor
    view: Tensor
    grid: Grid


def prepare(image: Image, spec: InputSpec, grid: Grid | None = None) -> Prepared:
    """Normalise an image on its own voxels and resample it once, without aliasing.

    Args:
        image: as read.
        spec: the model's input contract.
        grid: the grid to prepare it on (a moving image goes onto its fixed image's); default: a world-aligned grid of
            ``spec.spacing`` over the image's field of view, cut to the foreground and ``spec.margin_mm``.

    Returns:
        The same values, up to interpolation, however the image is stored (type, slope, orientation, spacing).

    Raises:
        InputError: the image holds NaN or a constant, or has not the spec's dimension or channels.
    """
    check_image(image)
    if image.grid.ndim != spec.ndim:
        raise InputError(f"{image.name}: is {image.grid.ndim}-D, but {spec.ndim}-D images are expected here")
    if image.data.shape[0] != spec.channels:
        raise InputError(f"{image.name}: has {image.data.shape[0]} channel(s), but {spec.channels} are expected here")
    data = normalise(image.data, spec)[None]
    if grid is not None:
        return _on(data, image.grid, grid, spec)
    whole = canonical(image.grid, spec.spacing)
    prepared = _on(data, image.grid, whole, spec)
    if spec.margin_mm is None:
        return prepared
    start, stop = foreground_box(prepared, spec)
    inside = (slice(None), slice(None), *_slices(start, stop))
    return Prepared(prepared.data[inside].contiguous(), prepared.view[inside].contiguous(), _cut(whole, start, stop))


def prepare_source(image: Image, spec: InputSpec, grid: Grid) -> Prepared:
    """A moving image on its own voxels, to be deformed from there onto ``grid``.

    Args:
        image: as read.
        spec: the model's input contract.
        grid: of the fixed image; where it is coarser than the image, that is smoothed and sampled at its spacing
            along the image's own axes. Otherwise voxels stay as they are.

    Returns:
        As :func:`prepare`; in view everywhere.
    """
    finest = min(grid.spacing)
    return prepare(image, spec, image.grid.with_spacing([max(finest, step) for step in image.grid.spacing]))


def prepare_labels(labels: Image, grid: Grid) -> Tensor:
    """Bring a label map onto a grid: the label that fills most of a target voxel (0 outside the view).

    Args:
        labels: integer map, one channel; values are kept.
        grid: as :attr:`Prepared.grid` of the image it belongs to.

    Returns:
        ``(1, 1, *spatial)``, the labels' integer type.

    Raises:
        InputError: the map has several channels or another dimension than the grid.
    """
    if labels.data.shape[0] != 1 or labels.grid.ndim != grid.ndim:
        raise InputError(f"{labels.name}: a {grid.ndim}-D label map with one channel is expected here")
    return majority(labels, grid, grid)


def place(image: Image, affine: Affine) -> Image:
    """A moving image, or its mask, where an affine map brings it in the fixed space: same voxels, another header."""
    return replace(image, grid=Grid(image.grid.shape, torch.linalg.solve(affine.matrix, image.grid.affine)))


def check_mask(mask: Image) -> None:
    """Refuse a mask of which nothing counts, or that is not finite; what is above 0 counts.

    Raises:
        InputError: it is.
    """
    if not bool(mask.data.isfinite().all()):
        raise InputError(f"{mask.name}: the mask has values that are NaN or infinite; give 0 and 1")
    if not bool((mask.data > 0).any()):
        raise InputError(f"{mask.name}: the mask is empty; nothing would count")


def prepare_mask(mask: Image, grid: Grid) -> Tensor:
    """Bring a mask onto a grid: only what no voxel outside the mask, or outside the view, had a part in.

    Args:
        mask: one channel; what is above 0 counts.
        grid: as :attr:`Prepared.grid` of the image it belongs to.

    Returns:
        ``(1, 1, *spatial)`` float32, 0 or 1.

    Raises:
        InputError: the mask has several channels or another dimension than the grid.
    """
    if mask.data.shape[0] != 1 or mask.grid.ndim != grid.ndim:
        raise InputError(f"{mask.name}: a {grid.ndim}-D mask with one channel is expected here")
    outside = (mask.data[None] <= 0).to(torch.float32)
    share = resample(smooth(outside, smoothing(mask.grid, grid)), mask.grid, grid, background=1.0)
    return (share < _MASKED).to(torch.float32)


def majority(labels: Image, cell: Grid, target: Grid) -> Tensor:
    """The label that fills most of a voxel of ``cell``, around each voxel of ``target`` (0 outside the view).

    Args:
        labels: integer map, one channel.
        cell: only its voxels' extent counts.
        target: where the result is sampled; may be finer than ``cell``.

    Returns:
        ``(1, 1, *target.shape)``, the labels' integer type.
    """
    sigmas = smoothing(labels.grid, cell)
    reach = [ceil(3 * sigma) + 1 for sigma in sigmas]
    best = torch.zeros(1, 1, *target.shape)
    total = torch.zeros(1, 1, *target.shape)
    result = torch.zeros(1, 1, *target.shape, dtype=labels.data.dtype)
    for value in torch.unique(labels.data).tolist():
        if value == 0:
            continue
        mask = labels.data[0] == value
        start, stop = _box(mask, reach)
        part = smooth(mask[_slices(start, stop)].to(torch.float32)[None, None], sigmas)
        share = resample(part, _cut(labels.grid, start, stop), target)
        result[share > best] = value
        best = torch.maximum(best, share)
        total += share
    result[1 - total > best] = 0
    return result


def check_same_grid(part: Image, grid: Grid, name: str) -> None:
    """Refuse a label map, mask or channel that is not on the voxels of its image.

    Args:
        part: the label map, mask or channel, as read.
        grid: of the image.
        name: of the image, for the message.

    Raises:
        InputError: shape or position differ; the message names both.
    """
    if part.grid.shape != grid.shape:
        raise InputError(f"{part.name}: shape {_times(part.grid.shape)} differs from {_times(grid.shape)} of {name}")
    if not part.grid.matches(grid, tolerance=0.1):
        raise InputError(f"{part.name}: its affine differs from that of {name}")


def smoothing(source: Grid, target: Grid) -> tuple[float, ...]:
    """Deviations of the Gaussian, in source voxels per axis, that makes target samples means over target voxels.

    A target voxel, seen in source voxels, is a box with covariance ``M Mᵀ / 12`` (``M``: steps of the target's axes);
    a source voxel has ``1 / 12`` of it already. No smoothing where the target is as fine as the source.
    """
    steps = matrix(target, source)[0, :, :-1]
    return tuple(sqrt(max(0.0, (float(row @ row) - 1) / 12)) for row in steps)


def smooth(data: Tensor, sigmas: Sequence[float]) -> Tensor:
    """Gaussian of these deviations (voxels, one per axis) on ``(N, C, *spatial)``; only what is in view counts."""
    for axis, sigma in enumerate(sigmas):
        data = _smooth(data, axis + 2, sigma)
    return data


def foreground_box(prepared: Prepared, spec: InputSpec) -> tuple[list[int], list[int]]:
    """First and one-past-last voxel, per axis, of the foreground and ``spec.margin_mm`` around it (clipped)."""
    distance = (prepared.data - spec.background).abs().amax(1)[0]
    margin = [ceil((spec.margin_mm or 0) / step) for step in prepared.grid.spacing]
    return _box(distance > _FOREGROUND * distance.max(), margin)


def _cut(grid: Grid, start: list[int], stop: list[int]) -> Grid:
    return grid.window(start, [b - a for a, b in zip(start, stop, strict=True)])


def _slices(start: list[int], stop: list[int]) -> tuple[slice, ...]:
    return tuple(slice(a, b) for a, b in zip(start, stop, strict=True))


def _on(data: Tensor, source: Grid, target: Grid, spec: InputSpec) -> Prepared:
    means = smooth(data, smoothing(source, target))
    return Prepared(resample(means, source, target, background=spec.background), in_view(source, target), target)


def _box(mask: Tensor, margin: list[int]) -> tuple[list[int], list[int]]:
    """First and one-past-last index of the true voxels per axis, with a margin, within the volume."""
    start, stop = [], []
    for axis, size in enumerate(mask.shape):
        others = [other for other in range(mask.ndim) if other != axis]
        hit = mask.amax(dim=others).nonzero().flatten()
        start.append(max(0, int(hit[0]) - margin[axis]))
        stop.append(min(size, int(hit[-1]) + 1 + margin[axis]))
    return start, stop


def _smooth(data: Tensor, axis: int, sigma: float) -> Tensor:
    """Gaussian along one axis; at the ends only what is there counts."""
    radius = min(ceil(3 * sigma), data.shape[axis] - 1)
    if sigma < 0.1 or radius == 0:  # the neighbours' weights are below 1e-21
        return data
    size = data.shape[axis]
    result = torch.zeros_like(data)
    weights = torch.zeros(size, dtype=data.dtype, device=data.device)
    for step in range(-radius, radius + 1):
        weight = exp(-0.5 * (step / sigma) ** 2)
        length = size - abs(step)
        to, source = max(0, -step), max(0, step)
        result.narrow(axis, to, length).add_(data.narrow(axis, source, length), alpha=weight)
        weights.narrow(0, to, length).add_(weight)
    return result.div_(weights.reshape([-1 if other == axis else 1 for other in range(data.ndim)]))


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join(str(n) for n in shape)
