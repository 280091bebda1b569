"""Pairs made of label maps, or of nothing: known maps and looks that no scanner has (SynthMorph)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from regnet import ops
from regnet.data.datasets import Key, Sample, draw_of
from regnet.data.painting import Look, paint
from regnet.data.pose import random_pose
from regnet.data.shapes import random_body, random_shapes, surround
from regnet.data.synthesis import generator_of, random_deformations

_SHELLS = 3  # of `surround`


@dataclass(frozen=True)
class LabelRecipe:
    """How far pairs made of label maps differ.

    Attributes:
        displacement_mm: ends of the deviation (per component) of the deformation between moving and fixed.
        anatomy_mm: the same for the deformation of the label map before the pair is made of it.
        scales_mm: control spacings of the random velocities.
        rotation_deg, scaling, shift_mm: largest pose change before the pair is made.
        shapes: labels in a map of random shapes.
        shape_mm: ends of about the size of one; the logarithm is uniform between them.
        blobs: kinds of blobs outside; 0: none.
        stripped: share of the pairs with nothing outside the innermost shell.
        look: of each image by itself.
    """

    displacement_mm: Sequence[float] = (0.5, 4.0)
    anatomy_mm: Sequence[float] = (0.0, 4.0)
    scales_mm: Sequence[float] = (16.0, 32.0, 64.0)
    rotation_deg: float = 10.0
    scaling: float = 0.1
    shift_mm: float = 8.0
    shapes: int = 16
    shape_mm: Sequence[float] = (10.0, 40.0)
    blobs: int = 4
    stripped: float = 0.5
    look: Look = field(default_factory=Look)

    def __post_init__(self) -> None:
        for name in ("displacement_mm", "anatomy_mm"):
            ends = getattr(self, name)
            if len(ends) != 2 or not 0 <= ends[0] <= ends[1]:
                raise ValueError(f"recipe: {name} must be two ends, low to high, got {ends!r}")
        if len(self.shape_mm) != 2 or not 0 < self.shape_mm[0] <= self.shape_mm[1]:
            raise ValueError(f"recipe: shape_mm must be two ends above 0, low to high, got {self.shape_mm!r}")
        if not 1 <= self.shapes <= 128 or not 0 <= self.blobs <= 64:
            raise ValueError(f"recipe: 1 to 128 shapes and 0 to 64 blobs, got {self.shapes} and {self.blobs}")


def pair_of_labels(
    moving: Tensor, fixed: Tensor, spacing: float, recipe: LabelRecipe, generator: torch.Generator
) -> dict[str, Tensor]:
    """Two images of one label map, bent differently; or of two maps in which a label has one meaning.

    Args:
        moving, fixed: ``(1, 1, *shape)`` uint8, 0 outside, on any device; the same tensor for one map.
        spacing: mm.
        recipe: how far the two differ.
        generator: on the CPU; see :func:`regnet.data.painting.paint`.

    Returns:
        As :func:`regnet.data.synthetic_pair`; the labels of the pair are those of the maps, and 0 for what was put
        around them. ``flow`` is NaN for two maps, where nobody knows it.
    """
    shape, device = moving.shape[2:], moving.device
    one = fixed is moving
    maps = moving if one else torch.cat([moving, fixed])
    count = int(maps.max()) + 1
    stripped = bool(torch.rand((), generator=generator) < recipe.stripped)
    whole = torch.cat([surround(each, count, spacing, recipe.blobs, stripped, generator) for each in maps[:, None]])
    ends = (recipe.anatomy_mm, recipe.displacement_mm)
    fields = random_deformations(shape, spacing, recipe.scales_mm, ends, generator).to(device)
    anatomy, flow = fields[:1], fields[1:]
    pose = random_pose(
        shape, [spacing] * len(shape), recipe.rotation_deg, recipe.scaling, recipe.shift_mm, generator
    ).to(anatomy)
    both = torch.cat([anatomy, ops.compose(anatomy, flow, bound="replicate")])
    bent = ops.warp(whole.float(), both, order=0, bound="replicate", extrapolate="edge", matrix=pose).to(torch.uint8)
    total = count + _SHELLS + recipe.blobs
    pair: dict[str, Tensor] = {}
    for name, each in zip(("moving", "fixed"), bent[:, None], strict=True):
        pair[name], view = (part[0] for part in paint(each, total, spacing, recipe.look, stripped, generator))
        pair[f"{name}_labels"] = each[0].masked_fill(each[0] >= count, 0)
        pair["view" if name == "moving" else "fixed_mask"] = view
    truth = flow[0] if one else torch.full_like(flow[0], torch.nan)
    return {**pair, "flow": truth, "spacing": torch.full((len(shape),), spacing, device=device)}


class LabelPairs(Dataset[Sample]):
    """Pairs made on the fly, each of a label map that is drawn, or of random shapes.

    Args:
        maps: ``(1, 1, *shape)`` uint8 each; none: random shapes only.
        shape: of the pairs.
        spacing: mm.
        length: pairs in an epoch.
        recipe: how far the images of a pair differ.
        shapes_share: of the pairs, those made of random shapes although there are maps.
        across: of the other pairs, those of two different maps.
        seed: of every draw.
        training: as :class:`regnet.data.SyntheticPairs`.
        device: where the pairs are made.
    """

    def __init__(
        self,
        maps: Sequence[Tensor],
        shape: Sequence[int],
        spacing: float,
        length: int,
        recipe: LabelRecipe | None = None,
        shapes_share: float = 0.5,
        across: float = 0.0,
        seed: int = 0,
        training: bool = True,
        device: torch.device | str = "cpu",
    ) -> None:
        shares_fit = 0 <= shapes_share <= 1 and 0 <= across <= 1
        if not isinstance(length, int) or length < 1 or not shares_fit:
            raise ValueError(
                f"label pairs need a positive length and shares in [0, 1], got {length!r}, {shapes_share}, {across}"
            )
        if across and len(maps) < 2:
            raise ValueError(f"pairs across label maps need two, got {len(maps)}")
        self.maps = [labels.to(device) for labels in maps]
        self.shape, self.spacing, self.length = tuple(shape), spacing, length
        self.recipe = recipe or LabelRecipe()
        self.shapes_share = shapes_share if maps else 1.0
        self.across = across
        self.seed, self.training, self.device = seed, training, device

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, key: Key) -> Sample:
        draw, name, index = draw_of(key, self.length, self.training)
        generator = generator_of(self.seed, *draw)
        if float(torch.rand((), generator=generator)) < self.shapes_share:
            moving = fixed = self._shapes(generator)
            source = "shapes"
        else:
            order = torch.randperm(len(self.maps), generator=generator).tolist()
            moving = fixed = self.maps[order[0]]
            source = f"map{order[0]}"
            if float(torch.rand((), generator=generator)) < self.across:
                fixed = self.maps[order[1]]
                source += f"to{order[1]}"
        pair: dict[str, Any] = dict(pair_of_labels(moving, fixed, self.spacing, self.recipe, generator))
        return {**pair, "id": f"{source}-{name}", "index": index}

    def _shapes(self, generator: torch.Generator) -> Tensor:
        low, high = self.recipe.shape_mm
        size = low * (high / low) ** float(torch.rand((), generator=generator)) / self.spacing
        inside = random_body(self.shape, generator, self.device)
        return (random_shapes(self.shape, self.recipe.shapes, size, generator, self.device) + 1) * inside
