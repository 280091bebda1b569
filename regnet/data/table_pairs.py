"""The pairs of a table, prepared by a model's input contract.

An item is a dictionary without a batch axis, as :mod:`regnet.data.datasets` describes, with ``source``
``(C + 1, *own)``, the moving image on its own voxels and where it counts, and ``matrix`` ``(D, D + 1)`` from voxels of
the fixed grid to those (see :class:`regnet.models.Registration`): so the loss interpolates the moving image once,
whatever the two affines. ``fixed_mask`` ``(1, *spatial)`` is 1 where the fixed image and its mask reach; the moving
mask is in ``view`` and in the last channel of ``source``. ``moving_points``, ``fixed_points`` ``(K, D)``: voxels of the
fixed grid.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.utils.data import Dataset

from regnet.data.cache import Cache
from regnet.data.datasets import Key, Sample
from regnet.data.pairing import AllPairs, Pairing, has
from regnet.data.prepare import Prepared
from regnet.data.reader import Reader, read_start
from regnet.data.spec import InputSpec
from regnet.data.synthesis import Draw, generator_of
from regnet.data.table import Pair, Row, Subject
from regnet.errors import InputError
from regnet.io.transform import read_transform
from regnet.spatial.affine import Affine
from regnet.spatial.grid import Grid, matrix


class TablePairs(Dataset[Sample]):
    """Pairs of a table; the fixed image defines the grid.

    Where any pair has labels or landmarks, all have: empty ones where the table names none, so that they add nothing.

    Args:
        rows: pairs, or images: then :class:`regnet.data.AllPairs` of them.
        spec: the input contract.
        seed: of every draw.
        training: whether the pairs of an epoch are drawn anew in each.
        length: pairs in an epoch, None: all of them; of images, as many as there are. The pairs are cut into so many
            parts of equal size, and item ``index`` is one of part ``index``: drawn anew every epoch in training, else
            its first.
        cache: where prepared images are kept.
        space: of landmarks; see :func:`regnet.data.landmarks.read_landmarks`.

    Raises:
        InputError: no rows, or fewer than ``length``, or a single image. Items raise it for images that cannot be used.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        spec: InputSpec,
        seed: int = 0,
        training: bool = True,
        length: int | None = None,
        cache: Cache | None = None,
        space: str | None = None,
    ) -> None:
        if not rows:
            raise InputError("the table has no rows for this split")
        images = isinstance(rows[0], Subject)
        self.rows: Sequence[Pair] = AllPairs(rows) if images else rows  # type: ignore[arg-type, assignment]
        usual = len(self.rows.images) if isinstance(self.rows, Pairing) else len(self.rows)
        self.length = min(usual, len(self.rows)) if length is None else length
        if not 1 <= self.length <= len(self.rows):
            raise InputError(f"data: {self.length} pairs an epoch are asked for, but there are {len(self.rows)}")
        self.spec = spec
        self.seed = seed
        self.training = training
        self.reader = Reader(spec, cache, space)
        self._labelled, self._marked = has(self.rows, "labels"), has(self.rows, "points")

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, key: Key) -> Sample:
        epoch, index = key if isinstance(key, tuple) else (0, key)
        if not 0 <= index < self.length:
            raise IndexError(f"item {index} of {self.length}")
        pair = self.rows[self._number(epoch, index)]
        read = self.reader
        fixed = read.image(pair.fixed)
        start = read_start(pair.initial_transform, read.grid(pair.moving), read.grid(pair.fixed))
        moving = read.image(pair.moving, fixed.grid, start)
        source = read.source(pair.moving, fixed.grid, start)
        if not moving.view.any():
            raise InputError(f"{pair.moving[0]} and {pair.fixed[0]}: do not overlap in the world; align them first")
        view, own, mask = moving.view, source.view, fixed.view
        if pair.moving_mask:
            view = view * read.mask(pair.moving_mask, pair.moving, fixed.grid, start)
            own = own * read.mask(pair.moving_mask, pair.moving, source.grid, start)
        if pair.fixed_mask:
            mask = mask * read.mask(pair.fixed_mask, pair.fixed, fixed.grid)
        sample: Sample = {
            "moving": moving.data[0],
            "fixed": fixed.data[0],
            "view": view[0],
            "fixed_mask": mask[0],
            "source": torch.cat([source.data, own], dim=1)[0],
            "matrix": matrix(fixed.grid, source.grid)[0].float(),
            "spacing": torch.tensor(fixed.grid.spacing, dtype=torch.float32),
            "id": pair.id,
            "index": index,
            "epoch": epoch,
        }
        if self._labelled:
            sample |= self._labels(pair, fixed, start)
        if self._marked:
            sample |= self._points(pair, fixed.grid, start)
        if pair.true_warp:
            sample["flow"] = read_transform(pair.true_warp).on(fixed.grid).flow.float()
        return sample

    def _number(self, epoch: int, index: int) -> int:
        """Which pair it is: one of a part of the pairs."""
        first, last = (n * len(self.rows) // self.length for n in (index, index + 1))
        if not self.training or last - first == 1:
            return first
        generator = generator_of(self.seed, Draw.TRAINING, epoch, index)
        return first + int(torch.randint(last - first, (), generator=generator))

    def _labels(self, pair: Pair, fixed: Prepared, start: Affine | None) -> dict[str, Tensor]:
        if not pair.moving_labels or not pair.fixed_labels:
            none = torch.zeros(1, *fixed.grid.shape, dtype=torch.uint8)
            return {"moving_labels": none, "fixed_labels": none}
        return {
            "moving_labels": self.reader.labels(pair.moving_labels, pair.moving, fixed.grid, start)[0],
            "fixed_labels": self.reader.labels(pair.fixed_labels, pair.fixed, fixed.grid)[0],
        }

    def _points(self, pair: Pair, grid: Grid, start: Affine | None) -> dict[str, Tensor]:
        if not pair.moving_points or not pair.fixed_points:
            return {"moving_points": torch.zeros(0, grid.ndim), "fixed_points": torch.zeros(0, grid.ndim)}
        moving = self.reader.points(pair.moving_points, pair.moving, grid, start)
        fixed = self.reader.points(pair.fixed_points, pair.fixed, grid)
        if len(moving) != len(fixed):
            raise InputError(
                f"{pair.moving_points}: has {len(moving)} landmarks, but {pair.fixed_points} has {len(fixed)}; "
                "they must go together row by row"
            )
        return {"moving_points": moving, "fixed_points": fixed}
