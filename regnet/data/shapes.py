"""Label maps from nothing, and what may lie around a brain."""

from collections.abc import Sequence
from math import erf, sqrt

import torch
from torch import Tensor

from regnet.data.prepare import smooth
from regnet.data.splines import random_field

_RADIUS = (0.6, 0.85)  # of a body, in half sides of the grid
_DENT = 0.12  # deviation of its surface, in the same
_SHELLS_MM = ((1.0, 5.0), (3.0, 8.0), (3.0, 10.0))  # ends of the thickness: fluid, skull, scalp
_BLUR_MM = 8.0  # of the mask whose levels are the shells
_UNEVEN = 0.25  # deviation of the distance of a shell, in its own


def random_shapes(
    shape: Sequence[int],
    count: int,
    spacing: float,
    generator: torch.Generator,
    device: torch.device | str | None = None,
) -> Tensor:
    """Where each of ``count`` smooth random fields is the largest (SynthMorph: Hoffmann et al., TMI 2022).

    Args:
        shape: of the map.
        count: labels.
        spacing: of the fields' control points, voxels: about the size of a shape.
        generator: on the CPU; the only source of randomness.
        device: of the map.

    Returns:
        ``(1, 1, *shape)`` uint8, 0 to ``count - 1``.
    """
    best = random_field(shape, spacing, 1, generator, device)
    labels = torch.zeros_like(best, dtype=torch.uint8)
    for label in range(1, count):
        field = random_field(shape, spacing, 1, generator, device)
        labels.masked_fill_(field > best, label)
        best = torch.maximum(best, field)
    return labels


def random_body(shape: Sequence[int], generator: torch.Generator, device: torch.device | str | None = None) -> Tensor:
    """A dented ball about the middle of the grid, ``(1, 1, *shape)`` bool."""
    low, high = _RADIUS
    radius = low + (high - low) * float(torch.rand((), generator=generator))
    axes = [torch.linspace(-1, 1, n, device=device) for n in shape]
    distance = torch.stack(torch.meshgrid(*axes, indexing="ij")).norm(dim=0)
    dents = random_field(shape, max(2.0, min(shape) / 4), 1, generator, device)
    return distance < radius + _DENT * dents


def surround(
    labels: Tensor, first: int, spacing: float, blobs: int, stripped: bool, generator: torch.Generator
) -> Tensor:
    """Put shells around what is labelled and, unless it is ``stripped``, blobs outside of them.

    Args:
        labels: ``(1, 1, *spatial)``, 0 outside; no label that is set changes.
        first: of the new labels: ``first`` is the innermost shell, which fills holes too.
        spacing: mm.
        blobs: kinds of blobs; a third of the outside stays empty.
        stripped: only the innermost shell.
        generator: on the CPU; the only source of randomness.

    Returns:
        The same with labels ``first`` to ``first + 2 + blobs`` outside.
    """
    inside = labels > 0
    sigma = _BLUR_MM / spacing
    near = smooth(inside.float(), [sigma] * (labels.ndim - 2))  # Φ(-distance / blur) outside a plane
    uneven = 1 + _UNEVEN * random_field(labels.shape[2:], 4 * sigma, 1, generator, labels.device)
    result, reach, free = labels.clone(), 0.0, ~inside
    draws = torch.rand(len(_SHELLS_MM), generator=generator).tolist()
    for shell, ((thin, thick), draw) in enumerate(zip(_SHELLS_MM, draws, strict=True)):
        if stripped and shell:
            return result
        reach += thin + (thick - thin) * draw
        level = (1 + erf(-reach / _BLUR_MM / sqrt(2))) / 2
        here = free & (near > level * uneven)
        result.masked_fill_(here, first + shell)
        free &= ~here
    if blobs:
        kinds = random_shapes(labels.shape[2:], blobs + max(1, blobs // 2), 3 * sigma, generator, labels.device)
        outside = free & (kinds < blobs)
        result = torch.where(outside, (kinds + first + len(_SHELLS_MM)).to(result), result)
    return result
