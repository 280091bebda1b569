"""What a registration found, in its parts."""

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from regnet.spatial.affine import Affine
from regnet.spatial.composite import chain
from regnet.spatial.displacement import Displacement
from regnet.spatial.grid import Grid
from regnet.spatial.invert import Inverse, invert, roughly
from regnet.spatial.transform import Transform

_TOLERANCE = 1e-2  # of inverses, in voxels


@dataclass(frozen=True, eq=False)
class Result:
    """A deformation, then an affine map: ``moving(affine(deformation(x))) ~ fixed(x)``.

    Attributes:
        affine: of the affine stage, or the identity.
        deformation: within the fixed image's space, on whatever grid it was found.
        grid: of the fixed image.
        reverse: a map near the inverse of ``deformation``, where one is known.
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
    def inverted(self) -> Inverse:
        """The inverse of :attr:`forward`, that is of the field as it is written and interpolated, and what it misses.

        The reversed velocity is where the search starts, no more: between two voxels a field goes straight, so it is
        not quite the exponential whose values it has at the voxels.
        """
        start = roughly(self.deformation) if self.reverse is None else self.reverse
        return invert(self.forward, self.grid, tolerance=_TOLERANCE, start=start)

    @property
    def backward(self) -> Displacement:
        """The inverse of the deformation at the fixed image's voxels, without the affine map."""
        return self.inverted.transform

    def inverse_on(self, grid: Grid) -> Displacement:
        """The inverse of the whole map at the voxels of a grid, usually the moving image's: solved for there."""
        return invert(self.transform, grid, tolerance=_TOLERANCE, start=self.inverse).transform

    @property
    def transform(self) -> Transform:
        """The whole map, fixed -> moving; its field lies on the fixed image's voxels."""
        return self.forward if self._is_identity else chain([self.forward, self.affine])

    @property
    def inverse(self) -> Transform:
        """The whole map, moving -> fixed; its field lies on the fixed image's voxels."""
        return self.backward if self._is_identity else chain([self.affine.inverse(), self.backward])

    @property
    def _is_identity(self) -> bool:
        return torch.equal(self.affine.matrix, torch.eye(len(self.affine.matrix), dtype=torch.float64))
