"""The joint histogram of two images, smooth in their intensities, and its derivative."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regnet import ops

Range = Sequence[float] | None

_CHUNK = 2**18
"""Voxels at a time: what is held in float64 meanwhile does not grow with the image."""


class Bins:
    """Where the intensities of one image lie in the histogram: ``1 + (bins - 3) (v - low) / (high - low)``."""

    def __init__(self, values: Tensor, weight: Tensor | None, bins: int, limits: Range) -> None:
        self.values = values
        if limits is None:
            kept = values if weight is None else values[weight > 0]
            low, high = float(kept.min()), float(kept.max())
        else:
            low, high = map(float, limits)
            if not low < high:
                raise ValueError(f"a range of intensities must grow: got {tuple(limits)}")
        self.low = low
        self.scale = (bins - 3) / (high - low) if high > low else 0.0
        self.last = float(bins - 2)

    def coordinate(self, part: slice) -> Tensor:
        return ((self.values[part].double() - self.low) * self.scale + 1).clamp_(1, self.last)

    def slope(self, coordinate: Tensor) -> Tensor:
        """Of the coordinate in the intensity: none outside the range."""
        return ((coordinate > 1) & (coordinate < self.last)) * self.scale


def _chunks(places: Sequence[Bins]) -> list[slice]:
    size = places[0].values.numel()
    return [slice(start, min(start + _CHUNK, size)) for start in range(0, size, _CHUNK)]


def _coordinates(places: Sequence[Bins], part: slice) -> Tensor:
    """``(1, 2, 1, voxels)``: two axes of bins, and voxels along one row."""
    return torch.stack([place.coordinate(part) for place in places])[None, :, None]


def histogram(places: Sequence[Bins], weight: Tensor | None, bins: int) -> Tensor:
    """Joint histogram ``(bins, bins)``, float64, of sum 1: each voxel is pushed to its place by a cubic spline."""
    total = torch.zeros((bins, bins), dtype=torch.float64, device=places[0].values.device)
    for part in _chunks(places):
        coordinates = _coordinates(places, part)
        value = torch.ones_like(coordinates[:, :1]) if weight is None else weight[part].double()[None, None, None]
        total += ops.push(value, coordinates, (bins, bins), order=3, bound="zero")[0, 0]
        lost = coordinates.isnan().any(1, keepdim=True) & (value > 0)  # NaN has no place, and must reach the loss
        total += torch.where(lost.any(), torch.nan, 0.0)
    return total / total.sum()


def add_gradient(
    gradients: Sequence[Tensor | None], places: Sequence[Bins], weight: Tensor | None, slope: Tensor
) -> None:
    """The derivative of each voxel's push, which is the slope of the spline with coefficients ``slope``."""
    size = places[0].values.numel()
    total = size if weight is None else float(weight.double().sum())
    for part in _chunks(places):
        coordinates = _coordinates(places, part)
        along = ops.grad(slope[None, None], coordinates, order=3, bound="zero")[0, 0]
        for axis, (gradient, place) in enumerate(zip(gradients, places, strict=True)):
            if gradient is not None:
                step = along[axis, 0] * place.slope(coordinates[0, axis, 0]) / total
                gradient[part] = (step if weight is None else step * weight[part]).to(gradient.dtype)
