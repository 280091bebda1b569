"""How pairs become batches: which item when, and how items of different sizes go together."""

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.utils.data import DataLoader, DistributedSampler


class EpochSampler(DistributedSampler):
    """Yields ``(epoch, index)``, so that a worker, however long it lives, draws what belongs to this epoch.

    Lightning calls ``set_epoch`` at the start of each epoch, after a resume too; in a loop of your own, call it
    yourself. Being a ``DistributedSampler``, it is left alone by Lightning when training on several processes.
    Shuffled, each process gets as many items, some of them twice where the number does not divide; in order, as in
    validation, every item comes once.

    Args:
        dataset: with a length.
        shuffle: whether the order changes with the epoch (a function of seed and epoch).
        seed: of the order.
        replicas: number of processes.
        rank: of this one.
    """

    def __init__(self, dataset: Any, shuffle: bool = True, seed: int = 0, replicas: int = 1, rank: int = 0) -> None:
        super().__init__(dataset, num_replicas=replicas, rank=rank, shuffle=shuffle, seed=seed)
        self._begin = (0, 0)
        if not shuffle:
            self.num_samples = len(range(rank, len(dataset), replicas))

    def begin(self, epoch: int, samples: int) -> None:
        """Leave out the first ``samples`` of this process in that epoch: they were trained on before a resume."""
        self._begin = epoch, samples

    @property
    def done(self) -> int:
        """How many samples of this epoch are left out."""
        epoch, samples = self._begin
        return samples if epoch == self.epoch else 0

    def __iter__(self) -> Iterator[Any]:
        every = super().__iter__() if self.shuffle else range(self.rank, len(self.dataset), self.num_replicas)  # type: ignore[arg-type]
        for index in islice(every, self.done, None):
            yield self.epoch, index


class ResumableLoader(DataLoader):
    """A ``DataLoader`` that Lightning can continue in the middle of an epoch: it saves how many batches were given.

    Args:
        sampler: an :class:`EpochSampler`; the others as for ``DataLoader``.
    """

    sampler: EpochSampler
    batch_size: int
    _given = 0

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        self._given = self.sampler.done // self.batch_size
        for batch in super().__iter__():
            self._given += 1
            yield batch

    def state_dict(self) -> dict[str, int]:
        """Where the epoch stands."""
        return {"epoch": self.sampler.epoch, "batches": self._given}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on from there."""
        self.sampler.begin(state["epoch"], state["batches"] * self.batch_size)


def collate(samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Stack samples; smaller ones are padded at the end of their axes, with 0, and so are out of view there.

    Args:
        samples: as the datasets give them. Keys that not all of them have are left out. Where sizes differ, there is
            a ``fixed_mask``, so that padding does not count.

    Returns:
        Tensors with a batch axis, landmarks padded with NaN; ``id`` a list of str; ``index`` ``(N,)``.
    """
    if any(sample["fixed"].shape != samples[0]["fixed"].shape for sample in samples if "fixed" in sample):
        samples = [{"fixed_mask": torch.ones_like(sample["fixed"][:1]), **sample} for sample in samples]
    keys = [key for key in samples[0] if all(key in sample for sample in samples)]
    return {key: _stack([sample[key] for sample in samples], _FILL.get(key, 0.0)) for key in keys}


_FILL = {"moving_points": math.nan, "fixed_points": math.nan}  # such landmarks are left out


def _stack(values: list[Any], fill: float) -> Any:
    first = values[0]
    if isinstance(first, str):
        return values
    if not isinstance(first, Tensor):
        return torch.tensor(values)
    if all(value.shape == first.shape for value in values):
        return torch.stack(values)
    shape = [max(sizes) for sizes in zip(*(value.shape for value in values), strict=True)]
    dtype = torch.stack([torch.empty(0, dtype=value.dtype) for value in values]).dtype  # labels of several types
    return torch.stack([_pad(value.to(dtype), shape, fill) for value in values])


def _pad(value: Tensor, shape: Sequence[int], fill: float) -> Tensor:
    # torch counts the padding from the last axis
    ends = [amount for n, size in zip(reversed(shape), reversed(value.shape), strict=True) for amount in (0, n - size)]
    return pad(value, ends, value=fill)
