"""What a registration found, in its parts."""

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from regnet.spatial.affine import Affine
from regnet.spatial.composite import chain
from regnet.spatial.displacement import Displacement
from regnet.spatial.grid import Grid
from regnet.spatial.transform import Transform


@dataclass(frozen=True, eq=False)
class Result:
    """A deformation, then an affine map: ``moving(affine(deformation(x))) ~ fixed(x)``.

    Attributes:
        affine: of the affine stage, or the identity.
        deformation: within the fixed image's space, on whatever grid it was found.
        grid: of the fixed image.
        reverse: the inverse of ``deformation`` where that is known better than by inverting it.
        uncertainty: ``(1, *grid.shape)``, of the network's deformation, where it was asked for: see
            :func:`regnet.inference.uncertainty.uncertainty`.
    """

    affine: Affine
    deformation: Transform
    grid: Grid
    reverse: Transform | None = field(default=None, repr=False)
    uncertainty: Tensor | None = field(default=None, repr=False)

    @cached_property
    def forward(self) -> Displacement:
        """The deformation at the fixed image's voxels, without the affine map."""
        return self.deformation.on(self.grid)

    @cached_property
    def backward(self) -> Displacement:
        """The inverse of the deformation at the fixed image's voxels, without the affine map."""
        return self._back.on(self.grid)

    @property
    def transform(self) -> Transform:
        """The whole map, fixed -> moving; its field lies on the fixed image's voxels."""
        return self.forward if self._is_identity else chain([self.forward, self.affine])

    @property
    def inverse(self) -> Transform:
        """The whole map, moving -> fixed."""
        return self._back if self._is_identity else chain([self.affine.inverse(), self._back])

    @property
    def _is_identity(self) -> bool:
        return torch.equal(self.affine.matrix, torch.eye(len(self.affine.matrix), dtype=torch.float64))

    @cached_property
    def _back(self) -> Transform:
        return self.deformation.inverse() if self.reverse is None else self.reverse
