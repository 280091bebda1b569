"""What a step of training will cost, from steps on small crops of its batch.

Tensors that a step holds at once are counted, not the process: on crops of a few voxels that is exact, and it grows
linearly with the voxels, as does the time.
"""

import math
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils._python_dispatch import TorchDispatchMode

Batch = Mapping[str, Any]

# The larger crop has this share of each axis, in multiples of 16, so that its levels are as full as those of the whole;
# or all of it, where that is less than so many voxels, whose time says little.
_SHARE, _MULTIPLE, _LEAST = 0.5, 16, 40**3
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

    whole = batch["fixed"].shape[2:]
    large = crop_shape(whole, _SHARE)
    large = large if math.prod(large) >= _LEAST else list(whole)
    parts = [_crop(batch, shape) for shape in (crop_shape(large, _SHARE), large)]
    held = []
    for part in parts:
        with Held() as counter:
            step(part)
        held.append(counter.most)
    spent = [_shortest(lambda part=part: step(part)) for part in parts]  # type: ignore[misc]
    few, many, whole_many = (math.prod(part["fixed"].shape[2:]) for part in (*parts, batch))

    def carried(small: float, large: float) -> float:
        """The line through both crops, at the whole."""
        return large if many == whole_many else large + (large - small) / (many - few) * (whole_many - many)

    return Cost(carried(*held), carried(*spent))


def _shortest(call: Callable[[], None]) -> float:
    """Seconds, the less of two calls: what else runs on the machine only makes them longer."""
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        call()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def crop_shape(shape: Sequence[int], share: float) -> list[int]:
    """A smaller grid: about ``share`` of each axis, in multiples of 16."""
    return [min(n, max(_MULTIPLE, int(share * n) // _MULTIPLE * _MULTIPLE)) for n in shape]


def _crop(batch: Batch, shape: Sequence[int]) -> dict[str, Any]:
    """The middle of everything that lies on the batch's grid."""
    cut = [slice((n - m) // 2, (n - m) // 2 + m) for n, m in zip(batch["fixed"].shape[2:], shape, strict=True)]
    middle = (Ellipsis, *cut)
    return {key: value[middle].contiguous() if key in _ON_GRID else value for key, value in batch.items()}


def state_tensors(optimizer: Callable[[Iterable[nn.Parameter]], Optimizer]) -> int:
    """How many tensors of a weight's size an optimiser keeps for it: 2 of Adam's."""
    weight = nn.Parameter(torch.zeros(2, 3))
    weight.grad = torch.zeros_like(weight)
    trial = optimizer([weight])
    trial.step()
    return sum(isinstance(value, Tensor) and value.shape == weight.shape for value in trial.state[weight].values())
