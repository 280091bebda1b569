"""A field cut into slabs whose intermediate results stay in the processor's cache."""

from collections.abc import Iterator

from torch import Tensor

_VOXELS = 1 << 18


def slabs(field: Tensor) -> Iterator[tuple[int, int, int, int]]:
    """Rows of the first spatial axis of ``(N, C, *spatial)``, some at a time.

    Yields:
        ``start, stop`` and, with the neighbours that the field has on either side, ``low, high``.
    """
    size = field.shape[2]
    rows = max(1, _VOXELS // max(1, field[0, 0, 0].numel()))
    for start in range(0, size, rows):
        stop = min(size, start + rows)
        yield start, stop, max(0, start - 1), min(size, stop + 1)
