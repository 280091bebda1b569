"""A pair and what is known of its registration."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from regnet import ops
from regnet.report import remarks
from regnet.report.measures import Measures
from regnet.report.remarks import Remark
from regnet.spatial import Grid


@dataclass(frozen=True, eq=False)
class Registration:
    """A pair on the fixed image's grid, and what is known of it.

    Attributes:
        name: what to call the pair.
        fixed, moving, moved: ``(*grid.shape)``; ``moving`` as it lay in the world before.
        flow: ``(D, *grid.shape)``, voxels, fixed -> moving.
        mask: where it counts, booleans.
        view: where the moving image is in view after the map, booleans.
        volume: determinant of the map's affine part, which is left out of its Jacobian.
        labels: label maps by ``fixed``, ``moving`` and ``moved``; all or none.
        before, after: what was measured of the images as they lay, and of the map.
        about: of the manifest: ``version``, ``settings``, ``inputs``, ``seconds``, ``warnings`` and more.
    """

    name: str
    fixed: Tensor = field(repr=False)
    moving: Tensor = field(repr=False)
    moved: Tensor = field(repr=False)
    flow: Tensor = field(repr=False)
    grid: Grid
    mask: Tensor = field(repr=False)
    view: Tensor = field(repr=False)
    volume: float
    labels: Mapping[str, Tensor] = field(repr=False)
    before: Measures = field(repr=False)
    after: Measures = field(repr=False)
    about: Mapping[str, Any] = field(repr=False)

    def remarks(self) -> list[Remark]:
        """What is to be said of it in words."""
        before, after = self.means
        return [
            remarks.folds(self.determinant, self.mask, self.grid),
            *remarks.coverage(self.view, self.mask),
            *remarks.change(before, after),
            *remarks.movement(after, min(self.grid.spacing)),
            *(Remark("warning", text) for text in self.about.get("warnings", ())),
        ]

    @property
    def means(self) -> tuple[dict[str, float], dict[str, float]]:
        """The figures before and after, by name."""
        before, after = ({name: one.mean for name, one in found.items()} for found in (self.before, self.after))
        return before, after

    @cached_property
    def determinant(self) -> Tensor:
        """``(*grid.shape)``, without the affine part."""
        return ops.jacobian_determinant(self.flow[None])[0, 0] / self.volume

    @cached_property
    def length(self) -> Tensor:
        """Length of the displacement, mm."""
        return torch.tensordot(self.grid.affine[:-1, :-1].to(self.flow), self.flow, dims=1).norm(dim=0)
