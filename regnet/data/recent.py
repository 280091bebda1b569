"""What was made lately, kept in memory."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping

from torch import Tensor

Tensors = Mapping[str, Tensor]


class Recent:
    """Keeps the tensors used last while they fit; each worker of a loader has its own.

    Args:
        limit: bytes.
    """

    def __init__(self, limit: int = 256 * 2**20) -> None:
        self.limit = limit
        self._kept: OrderedDict[Hashable, Tensors] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable, make: Callable[[], Tensors]) -> Tensors:
        """What is kept under the key, made where there is nothing."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        found = make()
        self._kept[key] = found
        self._bytes += _size(found)
        while self._bytes > self.limit:
            self._bytes -= _size(self._kept.popitem(last=False)[1])
        return found


def _size(tensors: Tensors) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
