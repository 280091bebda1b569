"""Training batches changed on their device, by draws that are functions of seed, epoch and sample."""

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from regnet import ops
from regnet.data.pose import random_pose, then
from regnet.data.splines import control_shape, random_field, spline_field
from regnet.data.synthesis import Draw, generator_of

_COARSE = 2  # deformations are integrated on a lattice of this many voxels, and B-splines between
_SQUARINGS = 4
_WHOLE = 0.99  # of a mask: a voxel with less of it does not count


class Augmentation:
    """Random maps and intensities of a batch of pairs; moving and fixed image have their own, but flip together.

    An affine map of a moving image changes its ``matrix`` and no voxel; a deformed one goes on on the fixed grid.
    Labels, masks and landmarks follow. A known ``flow`` is left out, since it is no longer true.

    Args:
        rotation_deg, scaling, shift_mm: largest pose change; see :func:`regnet.data.pose.random_pose`.
        displacement_mm: ends of the deviation (per component) of a smooth diffeomorphism.
        scales_mm: control spacings of its velocity.
        flip: whether left and right change places in half of the pairs.
        swap: labels that change places then, such as ``[[2, 41], [3, 42]]``.
        intensity: called with one image, ``(C, *spatial)``, returns such a one; a layer of cornucopia, for instance. It
            may draw from torch's and Python's generators.

    Raises:
        ValueError: the ends of a deviation are none, or a label is swapped with two.
    """

    def __init__(
        self,
        rotation_deg: float = 0.0,
        scaling: float = 0.0,
        shift_mm: float = 0.0,
        displacement_mm: Sequence[float] = (0.0, 0.0),
        scales_mm: Sequence[float] = (32.0, 64.0),
        flip: bool = False,
        swap: Sequence[Sequence[int]] = (),
        intensity: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        if len(displacement_mm) != 2 or not 0 <= displacement_mm[0] <= displacement_mm[1]:
            raise ValueError(f"augmentation: displacement_mm must be two ends, low to high, got {displacement_mm!r}")
        named = [label for pair in swap for label in pair]
        if len(set(named)) < len(named) or any(len(pair) != 2 for pair in swap):
            raise ValueError(f"augmentation: swap must be pairs of labels, none of them twice, got {swap!r}")
        self.pose = (rotation_deg, scaling, shift_mm)
        self.displacement_mm = tuple(displacement_mm)
        self.scales_mm = tuple(scales_mm)
        self.flip = flip
        self.swap = [tuple(pair) for pair in swap]
        self.intensity = intensity

    def __call__(self, batch: Mapping[str, Any], seed: int) -> dict[str, Any]:
        """A changed batch; what ``batch`` holds is left as it is.

        Args:
            batch: of :class:`regnet.data.TablePairs`, collated, on any device.
            seed: of every draw; the others come from ``epoch`` and ``index``.
        """
        out = {key: value for key, value in batch.items() if key != "flow"}
        keys = zip(batch["epoch"].tolist(), batch["index"].tolist(), strict=True)
        draws = [generator_of(seed, Draw.AUGMENTATION, *key) for key in keys]
        flips = [self.flip and bool(torch.rand((), generator=draw) < 0.5) for draw in draws]
        spacing = batch["spacing"].cpu()
        images = {"fixed": batch["fixed"], "moving": batch["source"][:, :-1]}
        for side, image in images.items():
            changed = self._scanned(image, draws)
            affine = self._affine(batch["fixed"].shape[2:], spacing, flips, draws).to(image.device)
            flow = self._flow(batch["fixed"].shape[2:], spacing, draws, image.device)
            if side == "fixed":
                weight = batch["fixed_mask"]
                warped = _warp(torch.cat([changed, weight.to(changed)], 1), flow, affine)
                out |= {"fixed": warped[:, :-1], "fixed_mask": (warped[:, -1:] > _WHOLE).to(weight)}
            else:
                own = torch.cat([changed, batch["source"][:, -1:]], 1)
                to_source = then(batch["matrix"], affine)
                warped = _warp(own, flow, to_source)
                out |= {"moving": warped[:, :-1], "view": (warped[:, -1:] > _WHOLE).to(own)}
                if self.displacement_mm[1] > 0:
                    identity = torch.eye(*affine.shape[1:]).to(affine).expand_as(affine)
                    out |= {"source": warped, "matrix": identity}
                else:
                    out |= {"source": own, "matrix": to_source}
            if f"{side}_labels" in batch:
                labels = ops.warp_labels(batch[f"{side}_labels"], flow, "linear", matrix=affine)
                out[f"{side}_labels"] = self._swapped(labels, flips)
            if f"{side}_points" in batch:
                out[f"{side}_points"] = _carried(batch[f"{side}_points"], flow, affine)
        return out

    def _affine(
        self, shape: Sequence[int], spacing: Tensor, flips: Sequence[bool], draws: Sequence[torch.Generator]
    ) -> Tensor:
        """Voxels -> voxels of the fixed grid, ``(N, D, D + 1)``."""
        maps = []
        for flip, steps, draw in zip(flips, spacing, draws, strict=True):
            affine = random_pose(shape, steps.tolist(), *self.pose, draw)
            if flip:  # the grid lies along the world's axes, the first from left to right
                affine[:, 0] = -affine[:, 0]
                affine[0, 0, -1] += shape[0] - 1
            maps.append(affine)
        return torch.cat(maps).float()

    def _flow(
        self, shape: Sequence[int], spacing: Tensor, draws: Sequence[torch.Generator], device: torch.device
    ) -> Tensor:
        """Displacements, ``(N, D, *shape)``, voxels."""
        ndim, (low, high) = len(shape), self.displacement_mm
        if high == 0:
            return torch.zeros(len(draws), ndim, *shape, device=device)
        lattice = control_shape(shape, _COARSE)
        velocities = torch.zeros(len(draws), ndim, *lattice, device=device)
        for velocity, steps, draw in zip(velocities, spacing, draws, strict=True):
            step = _COARSE * float(steps.prod()) ** (1 / ndim)
            deviation = low + (high - low) * float(torch.rand((), generator=draw))
            for scale in self.scales_mm:
                field = random_field(lattice, scale / step, ndim, draw, device)[0]
                velocity += field * deviation / math.sqrt(len(self.scales_mm))
            velocity /= _COARSE * steps.to(device).view(-1, *[1] * ndim)
        return spline_field(ops.integrate(velocities, steps=_SQUARINGS, bound="replicate") * _COARSE, shape, _COARSE)

    def _scanned(self, images: Tensor, draws: Sequence[torch.Generator]) -> Tensor:
        if self.intensity is None:
            return images
        changed = []
        for image, draw in zip(images, draws, strict=True):
            with _seeded(int(torch.randint(2**62, (), generator=draw)), image.device):
                changed.append(self.intensity(image).to(image))
        return torch.stack(changed)

    def _swapped(self, labels: Tensor, flips: Sequence[bool]) -> Tensor:
        flipped = torch.tensor(flips, device=labels.device).view(-1, *[1] * (labels.ndim - 1))
        result = labels
        for one, other in self.swap:
            for old, new in ((one, other), (other, one)):
                result = torch.where(flipped & (labels == old), new, result)
        return result.to(labels.dtype)


def _warp(image: Tensor, flow: Tensor, matrix: Tensor) -> Tensor:
    return ops.warp(image, flow, bound="replicate", extrapolate="edge", matrix=matrix)


def _carried(points: Tensor, flow: Tensor, affine: Tensor) -> Tensor:
    """Where the points ``(N, K, D)`` of an image lie after ``ops.warp(image, flow, matrix=affine)``."""
    ndim = points.shape[-1]
    posed = torch.linalg.solve(affine[..., :-1], (points.to(affine) - affine[..., -1][:, None]).mT)  # (N, D, K)
    if not posed.shape[-1] or not flow.any():
        return posed.mT.to(points)
    back = ops.invert(flow)
    places = posed.reshape(*posed.shape[:2], *[1] * (ndim - 1), -1)
    return (posed + ops.pull(back, places, bound="replicate").flatten(2)).mT.to(points)


@contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Torch's and Python's generators, begun anew within the block and restored after it."""
    before = random.getstate()
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        random.seed(seed)
        try:
            yield
        finally:
            random.setstate(before)
