"""Everything about a call of the families that is not a tensor."""

from typing import NamedTuple

from regnet.ops.options import Bound, Extrapolate, Order, bound_codes, extrapolate_code, order_codes

SCHEMA = "bool relative, int[] order, int[] bound, int extrapolate"
SILENT = 4  # added to the code of extrapolate; the core and plain torch know it


class How(NamedTuple):
    """As the core takes it."""

    relative: bool  # coordinates are displacements of the voxel they stand at
    order: list[int]
    bound: list[int]
    extrapolate: int

    @classmethod
    def of(cls, relative: bool, ndim: int, order: Order, bound: Bound, extrapolate: Extrapolate = True) -> "How":
        """From what a user says of ``ndim`` axes.

        Raises:
            ValueError: one of the words is none that we know.
        """
        return cls(relative, order_codes(order, ndim), bound_codes(bound, ndim), extrapolate_code(extrapolate))

    def silent(self) -> "How":
        """For what a derivative samples: at a NaN coordinate 0, where the value itself is NaN."""
        return self._replace(extrapolate=self.extrapolate | SILENT)
