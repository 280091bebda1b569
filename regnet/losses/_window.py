"""Windows around each voxel, and stretches of the first axis."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regnet import ops


@dataclass(frozen=True)
class Window:
    """Shape of the neighbourhood: a box of ``widths`` voxels, applied ``passes`` times in turn."""

    widths: tuple[int, ...]
    passes: int
    squared: bool

    def sum(self, image: Tensor) -> Tensor:
        """Weighted sum over the window around each voxel, nothing outside the image."""
        for _ in range(self.passes):
            image = ops.box_sum(image, self.widths)
        return image

    def weights(self, shape: Sequence[int], like: Tensor) -> list[Tensor]:
        """Total weight of the window around each voxel as factors along each axis; less at the faces."""
        factors = []
        for axis, size in enumerate(shape):
            ones = torch.ones((1, 1, size), dtype=torch.float64, device=like.device)
            for _ in range(self.passes):
                ones = ops.box_sum(ones, self.widths[axis])
            factors.append(ones.to(like.dtype).view(-1, *[1] * (len(shape) - 1 - axis)))
        return factors

    @property
    def reach(self) -> int:
        """Voxels along the first axis from the centre to the last one that counts."""
        return self.passes * (self.widths[0] // 2)


@dataclass(frozen=True)
class Range:
    """From and to along the first spatial axis."""

    start: int
    stop: int

    def wider(self, by: int, size: int) -> "Range":
        return Range(max(self.start - by, 0), min(self.stop + by, size))

    def within(self, outer: "Range") -> "Range":
        return Range(self.start - outer.start, self.stop - outer.start)

    def of(self, image: Tensor, dim: int = 2) -> Tensor:
        return image.narrow(dim, self.start, self.stop - self.start)


def product(factors: Sequence[Tensor]) -> Tensor:
    """``(1, 1, *spatial)``."""
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor
    return product[None, None]
