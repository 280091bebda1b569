"""Datasets of pairs. An item is a dictionary without a batch axis; :func:`regnet.data.collate` makes batches.

Keys: ``moving``, ``fixed`` ``(C, *spatial)`` on one grid; ``view`` ``(1, *spatial)``, 1 where the moving image
reaches; ``spacing`` ``(D,)`` mm; ``id``; ``index``; and where known ``moving_labels``, ``fixed_labels``
``(1, *spatial)`` integers and ``flow`` ``(D, *spatial)`` voxels, the true field on the fixed grid.
"""

import logging
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from regnet.data.prepare import Prepared, check_same_grid, prepare, prepare_labels
from regnet.data.spec import InputSpec
from regnet.data.synthesis import Recipe, Source, generator_of, synthetic_pair
from regnet.data.table import Pair, Subject
from regnet.errors import InputError
from regnet.io.image import Image, read_image, read_labels
from regnet.io.transform import read_transform
from regnet.spatial.grid import Grid

Key = int | tuple[int, int]
Sample = dict[str, Any]

# First element of every random key, so that validation never repeats a training draw.
_TRAINING, _VALIDATION = 0, 1
_CACHE_BYTES = 256 * 2**20

_log = logging.getLogger(__name__)


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
        epoch, index = _split(key, self.length)
        source = self.sources[index % len(self.sources)]
        draw = (_TRAINING, epoch, index) if self.training else (_VALIDATION, 0, index)
        sample: Sample = dict(synthetic_pair(source, self.spec, self.recipe, generator_of(self.seed, *draw)))
        name = f"{epoch:04d}-{index:04d}" if self.training else f"val-{index:04d}"
        return {**sample, "id": f"{source.name}-{name}", "index": index}


class TablePairs(Dataset[Sample]):
    """Pairs of a table, prepared by a model's input contract; the fixed image defines the grid.

    Args:
        rows: from :func:`regnet.data.read_table`. Of unpaired rows, item ``index`` has subject ``index`` as fixed and,
            as moving, another one: drawn anew every epoch in training, else the next in the table.
        spec: the input contract.
        seed: of every draw.
        training: see ``rows``.

    Raises:
        InputError: no rows, or a single unpaired one. Items raise it for images that cannot be used.
    """

    def __init__(
        self, rows: Sequence[Pair] | Sequence[Subject], spec: InputSpec, seed: int = 0, training: bool = True
    ) -> None:
        if not rows:
            raise InputError("the table has no rows for this split")
        if len(rows) == 1 and isinstance(rows[0], Subject):
            raise InputError(f"one unpaired image ({rows[0].id}) makes no pair; give two at least")
        if any(isinstance(row, Pair) and row.initial_transform for row in rows):
            _log.warning("column initial_transform is not used in training: resample the moving images first")
        self.rows: tuple[Pair | Subject, ...] = tuple(rows)
        self.spec = spec
        self.seed = seed
        self.training = training
        self._cache: OrderedDict[Any, Prepared | Tensor] = OrderedDict()
        self._grids: dict[tuple[Path, ...], Grid] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: Key) -> Sample:
        epoch, index = _split(key, len(self.rows))
        pair = self._pair(epoch, index)
        fixed = self._image(pair.fixed, None)
        moving = self._image(pair.moving, fixed.grid)
        if not moving.view.any():
            raise InputError(f"{pair.moving[0]} and {pair.fixed[0]}: do not overlap in the world; align them first")
        sample: Sample = {
            "moving": moving.data[0],
            "fixed": fixed.data[0],
            "view": moving.view[0],
            "spacing": torch.tensor(fixed.grid.spacing, dtype=torch.float32),
            "id": pair.id,
            "index": index,
        }
        if pair.moving_labels and pair.fixed_labels:
            sample["moving_labels"] = self._labels(pair.moving_labels, pair.moving, fixed.grid)[0]
            sample["fixed_labels"] = self._labels(pair.fixed_labels, pair.fixed, fixed.grid)[0]
        if pair.true_warp:
            sample["flow"] = read_transform(pair.true_warp).on(fixed.grid).flow.float()
        return sample

    def _pair(self, epoch: int, index: int) -> Pair:
        row = self.rows[index]
        if isinstance(row, Pair):
            return row
        step = 1
        if self.training:
            draw = generator_of(self.seed, _TRAINING, epoch, index)
            step += int(torch.randint(len(self.rows) - 1, (), generator=draw))
        moving = self.rows[(index + step) % len(self.rows)]
        assert isinstance(moving, Subject)  # a table is paired or unpaired as a whole
        return moving.onto(row)

    def _image(self, paths: tuple[Path, ...], grid: Grid | None) -> Prepared:
        key = (paths, grid)
        found = self._cache.get(key)
        if not isinstance(found, Prepared):
            image = read_channels(paths)
            self._grids[paths] = image.grid
            found = prepare(image, self.spec, grid)
            self._keep(key, found)
        return found

    def _labels(self, path: Path, image: tuple[Path, ...], grid: Grid) -> Tensor:
        key = (path, grid, "labels")
        found = self._cache.get(key)
        if not isinstance(found, Tensor):
            labels = read_labels(path)
            check_same_grid(labels, self._grids[image], str(image[0]))
            found = prepare_labels(labels, grid)
            self._keep(key, found)
        return found

    def _keep(self, key: Any, value: Prepared | Tensor) -> None:
        """Keep what was prepared while it fits; a worker has its own cache."""
        self._cache[key] = value
        while sum(_bytes(kept) for kept in self._cache.values()) > _CACHE_BYTES:
            self._cache.popitem(last=False)


def read_channels(paths: Sequence[Path]) -> Image:
    """Read one file per channel into one image.

    Raises:
        InputError: a file cannot be read, or lies on another grid than the first.
    """
    images = [read_image(path) for path in paths]
    first = images[0]
    for other in images[1:]:
        check_same_grid(other, first.grid, first.name)
    if len(images) == 1:
        return first
    return Image(torch.cat([image.data for image in images]), first.grid, first.path, first.header)


def _split(key: Key, length: int) -> tuple[int, int]:
    epoch, index = key if isinstance(key, tuple) else (0, key)
    if not 0 <= index < length:
        raise IndexError(f"item {index} of {length}")
    return epoch, index


def _bytes(value: Prepared | Tensor) -> int:
    tensors = (value,) if isinstance(value, Tensor) else (value.data, value.view)
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
