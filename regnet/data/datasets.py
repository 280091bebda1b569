"""Datasets of pairs. An item is a dictionary without a batch axis; :func:`regnet.data.collate` makes batches.

Keys: ``moving``, ``fixed`` ``(C, *spatial)`` on one grid; ``view`` ``(1, *spatial)``, 1 where the moving image
reaches; ``spacing`` ``(D,)`` mm; ``id``; ``index``; and where known ``moving_labels``, ``fixed_labels``
``(1, *spatial)`` integers and ``flow`` ``(D, *spatial)`` voxels, the true field on the fixed grid. Pairs of files have
more: :mod:`regnet.data.table_pairs`.
"""

from collections.abc import Sequence
from typing import Any

from torch.utils.data import Dataset

from regnet.data.spec import InputSpec
from regnet.data.synthesis import Draw, Recipe, Source, generator_of, synthetic_pair

Key = int | tuple[int, int]
Sample = dict[str, Any]


class SyntheticPairs(Dataset[Sample]):
    """Pairs made on the fly; the sources take turns.

    Args:
        sources: from :func:`regnet.data.synthesis.make_sources`.
        spec: the same as there.
        length: pairs in an epoch.
        recipe: how far the two images of a pair differ.
        seed: of every draw.
        training: item ``(epoch, index)`` is a function of seed, epoch and index (see
            :class:`regnet.data.EpochSampler`; a plain ``index`` means epoch 0). Otherwise the epoch does not matter
            and no item is ever drawn in training.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        spec: InputSpec,
        length: int,
        recipe: Recipe | None = None,
        seed: int = 0,
        training: bool = True,
    ) -> None:
        if not sources or not isinstance(length, int) or length < 1:
            raise ValueError(f"synthetic pairs need sources and a positive length, got {len(sources)} and {length!r}")
        self.sources = list(sources)
        self.spec = spec
        self.length = length
        self.recipe = recipe or Recipe()
        self.seed = seed
        self.training = training

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, key: Key) -> Sample:
        draw, name, index = draw_of(key, self.length, self.training)
        source = self.sources[index % len(self.sources)]
        sample: Sample = dict(synthetic_pair(source, self.spec, self.recipe, generator_of(self.seed, *draw)))
        return {**sample, "id": f"{source.name}-{name}", "index": index}


def draw_of(key: Key, length: int, training: bool) -> tuple[tuple[int, int, int], str, int]:
    """Key of an item's draws, its name, and its index.

    Raises:
        IndexError: there is no such item.
    """
    epoch, index = _split(key, length)
    if training:
        return (Draw.TRAINING, epoch, index), f"{epoch:04d}-{index:04d}", index
    return (Draw.VALIDATION, 0, index), f"val-{index:04d}", index


def _split(key: Key, length: int) -> tuple[int, int]:
    epoch, index = key if isinstance(key, tuple) else (0, key)
    if not 0 <= index < length:
        raise IndexError(f"item {index} of {length}")
    return epoch, index
