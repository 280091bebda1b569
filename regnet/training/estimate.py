"""What a step of training will cost, from steps on small crops of its batch.

Tensors that a step holds at once are counted, not the process: on crops of a few voxels that is exact, and it grows
linearly with the voxels, as does the time. Only the last axis is cropped: torch chooses a convolution by the product of
the sizes of all others (20,480 and below is computed another way, twice as slow), so the crop does as the whole will.
"""

import math
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils._python_dispatch import TorchDispatchMode

Batch = Mapping[str, Any]

# The crops are so wide, or a multiple, so that their levels are as full as those of the whole; the larger one has at
# least so many voxels, since the time of fewer says little.
_WIDTH, _LEAST = 16, 40**3
# Of the batch, what lies on its grid; an image on its own voxels is as large for every crop.
_ON_GRID = ("moving", "fixed", "view", "moving_labels", "fixed_labels", "fixed_mask", "flow")


@dataclass(frozen=True)
class Cost:
    """What a step takes.

    Attributes:
        bytes: most that its tensors held at once, beyond weights and images.
        seconds: forward and backward.
    """

    bytes: float
    seconds: float


class Held(TorchDispatchMode):
    """Counts the bytes of the tensors that are made inside the context, and how many were held at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.most = 0
        self._known: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator and look at what it returns."""
        result = func(*args, **(kwargs or {}))
        for value in torch.utils._pytree.tree_leaves(result):
            if isinstance(value, Tensor):
                self._count(value.untyped_storage())
        return result

    def _count(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        if key not in self._known:
            self._known[key] = storage.nbytes()
            self.now += storage.nbytes()
            self.most = max(self.most, self.now)
            weakref.finalize(storage, self._forget, key)

    def _forget(self, key: int) -> None:
        self.now -= self._known.pop(key, 0)


def estimate(loss: Callable[[Batch], Tensor], batch: Batch, parameters: Sequence[nn.Parameter]) -> Cost:
    """What forward and backward of ``batch`` will cost.

    Args:
        loss: of a batch, 0-d; it must work for crops of the batch, and leave nothing changed.
        batch: ``fixed`` ``(N, C, *spatial)``, and the rest.
        parameters: to be differentiated in.
    """

    def step(part: Batch) -> None:
        torch.autograd.grad(loss(part), [p for p in parameters if p.requires_grad], allow_unused=True)

    parts = [_crop(batch, width) for width in crop_widths(batch["fixed"].shape[2:])]
    held = []
    for part in parts:
        with Held() as counter:
            step(part)
        held.append(counter.most)
    spent = [_typical(lambda part=part: step(part)) for part in parts]  # type: ignore[misc]
    few, many, whole_many = (math.prod(part["fixed"].shape[2:]) for part in (*parts, batch))

    def carried(small: float, large: float) -> float:
        """The line through both crops, at the whole."""
        return large if many == whole_many else large + (large - small) / (many - few) * (whole_many - many)

    return Cost(carried(*held), carried(*spent))


def _typical(call: Callable[[], None]) -> float:
    """Seconds, the median of three calls."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return median(seconds)


def crop_widths(shape: Sequence[int]) -> tuple[int, int]:
    """How much of the last axis the smaller crop has, and the larger: thrice as much, or all where that is little."""
    small = math.ceil(_LEAST / math.prod(shape[:-1]) / 3 / _WIDTH) * _WIDTH
    if 3 * small < shape[-1]:
        return small, 3 * small
    return min(shape[-1], max(_WIDTH, shape[-1] // 2 // _WIDTH * _WIDTH)), shape[-1]


def _crop(batch: Batch, width: int) -> dict[str, Any]:
    """The middle, along the last axis, of everything that lies on the batch's grid."""
    start = (batch["fixed"].shape[-1] - width) // 2
    return {k: v.narrow(-1, start, width).contiguous() if k in _ON_GRID else v for k, v in batch.items()}


def state_tensors(optimizer: Callable[[Iterable[nn.Parameter]], Optimizer]) -> int:
    """How many tensors of a weight's size an optimiser keeps for it: 2 of Adam's."""
    weight = nn.Parameter(torch.zeros(2, 3))
    weight.grad = torch.zeros_like(weight)
    trial = optimizer([weight])
    trial.step()
    return sum(isinstance(value, Tensor) and value.shape == weight.shape for value in trial.state[weight].values())
