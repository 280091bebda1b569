"""Lightning data modules: synthetic pairs of a few brains, and pairs of a table."""

import logging
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lightning import LightningDataModule
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from regnet.data.augment import Augmentation
from regnet.data.cache import Cache
from regnet.data.datasets import SyntheticPairs
from regnet.data.label_maps import read_label_maps
from regnet.data.label_pairs import LabelPairs, LabelRecipe
from regnet.data.loading import EpochSampler, ResumableLoader, collate
from regnet.data.prepare import check_same_grid
from regnet.data.sample import sample_path
from regnet.data.slices import axial_slice
from regnet.data.sources import Listing
from regnet.data.spec import InputSpec
from regnet.data.study import Study
from regnet.data.synthesis import Recipe, Source, make_sources
from regnet.data.table_pairs import TablePairs
from regnet.errors import InputError
from regnet.io.image import Image, check_image, read_image, read_labels

_SAMPLE_IMAGES = ("colin27_t1", "mni152_t1")
_SAMPLE_LABELS = ("colin27_tissue", "mni152_tissue")
_SLICE_HEIGHTS = (-8.0, 0.0, 8.0, 16.0, 24.0)  # mm above a volume's middle: slices with cortex and ventricles

_log = logging.getLogger(__name__)


class _Pairs(LightningDataModule):
    """What both modules share: how loaders are made.

    Attributes:
        spec: the input contract, stored with the model.
    """

    def __init__(self, spec: InputSpec | Mapping[str, Any] | None, batch_size: int, num_workers: int, seed: int):
        super().__init__()
        self.spec = spec if isinstance(spec, InputSpec) else InputSpec.from_dict(spec or {})
        self.batch_size = batch_size
        self.num_workers = num_workers
        self.seed = seed

    def _loader(self, dataset: Dataset[Any], training: bool) -> DataLoader[Any]:
        trainer = self.trainer
        sampler = EpochSampler(
            dataset,
            shuffle=training,
            seed=self.seed,
            replicas=trainer.world_size if trainer else 1,
            rank=trainer.global_rank if trainer else 0,
        )
        if trainer and training:
            # When a run is resumed, Lightning starts the workers before it tells the sampler the epoch.
            sampler.set_epoch(trainer.fit_loop.epoch_progress.current.processed)  # type: ignore[attr-defined]
        elif len(sampler) == 0:
            raise InputError(f"data: {sampler.num_replicas} processes, but only {len(dataset)} pairs to validate on")  # type: ignore[arg-type]
        return (ResumableLoader if training else DataLoader)(
            dataset,
            batch_size=self.batch_size if training else 1,
            sampler=sampler,
            num_workers=self.num_workers,
            collate_fn=collate,
            persistent_workers=self.num_workers > 0,
        )


class _Drawn(_Pairs):
    """Pairs that are drawn, not read: new ones in every epoch, and fixed ones to judge by."""

    @abstractmethod
    def dataset(self, training: bool = True) -> Dataset[Any]:
        """The pairs of an epoch, or the fixed pairs for validation."""

    def train_dataloader(self) -> DataLoader[Any]:
        """Pairs that differ in every epoch."""
        return self._loader(self.dataset(), training=True)

    def val_dataloader(self) -> DataLoader[Any]:
        """The fixed pairs."""
        return self._loader(self.dataset(training=False), training=False)

    def test_dataloader(self) -> DataLoader[Any]:
        """The fixed pairs."""
        return self.val_dataloader()


class SyntheticData(_Drawn):
    """Synthetic pairs of a few brains, by default the two that ship with regnet.

    Args:
        spec: the input contract, or its plain values; with ``ndim`` 2, axial slices of volumes are used.
        images: files; ``None``: the sample brains and their tissue classes.
        labels: one label map per image, or ``None``.
        shape: of the pairs, voxels, one or one per axis; ``None``: what the largest brain needs.
        pairs: per training epoch.
        validation_pairs: the same in every epoch, never drawn in training.
        recipe: how far the images of a pair differ, or its plain values.
        batch_size: in training; validation takes one pair at a time.
        num_workers: processes that make pairs; the pairs do not depend on it.
        seed: of every draw.
    """

    def __init__(
        self,
        spec: InputSpec | Mapping[str, Any] | None = None,
        images: Sequence[str | Path] | None = None,
        labels: Sequence[str | Path] | None = None,
        shape: int | Sequence[int] | None = None,
        pairs: int = 256,
        validation_pairs: int = 8,
        recipe: Recipe | Mapping[str, Any] | None = None,
        batch_size: int = 1,
        num_workers: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__(spec, batch_size, num_workers, seed)
        if images is None:
            images = [sample_path(name) for name in _SAMPLE_IMAGES]
            labels = [sample_path(name) for name in _SAMPLE_LABELS]
        for name, files in (("images", images), ("labels", labels)):
            if isinstance(files, str | Path):
                raise InputError(f"data.{name}: a list of files is needed, such as [{files}]")
        self.images = [Path(path) for path in images]
        self.labels = None if labels is None else [Path(path) for path in labels]
        if self.labels is not None and len(self.labels) != len(self.images):
            raise InputError(f"data.labels: {len(self.labels)} files for {len(self.images)} images")
        self.shape = (shape,) * self.spec.ndim if isinstance(shape, int) else shape
        if self.shape is not None and (
            len(self.shape) != self.spec.ndim or not all(isinstance(n, int) and n > 0 for n in self.shape)
        ):
            raise InputError(f"data.shape: {self.spec.ndim} numbers of voxels are needed, got {shape!r}")
        self.pairs = pairs
        self.validation_pairs = validation_pairs
        self.recipe = recipe if isinstance(recipe, Recipe) else Recipe(**(recipe or {}))
        self._sources: list[Source] = []

    def setup(self, stage: str | None = None) -> None:
        """Read the brains, once."""
        if self._sources:
            return
        images = [check_image(read_image(path)) for path in self.images]
        labels: list[Image | None] = [None] * len(images)
        for i, path in enumerate(self.labels or ()):
            own = read_labels(path)
            check_same_grid(own, images[i].grid, images[i].name)
            labels[i] = own
        if self.spec.ndim == 2:
            images, labels = _axial(images, labels)
        self._sources = make_sources(images, labels, self.spec, self.shape)

    def dataset(self, training: bool = True) -> SyntheticPairs:
        """The pairs of an epoch, or the fixed pairs for validation."""
        self.setup()
        length = self.pairs if training else self.validation_pairs
        return SyntheticPairs(self._sources, self.spec, length, self.recipe, self.seed, training)


class SynthesisData(_Drawn):
    """Pairs made of label maps or of random shapes, in looks that no scanner has: no image is needed.

    Args:
        spec: the input contract, or its plain values; with ``ndim`` 2, axial slices of volumes are used.
        labels: files of label maps, 0 outside the brain; ``sample``: the tissue maps that ship with regnet; None:
            random shapes only.
        shape: of the pairs, voxels, one or one per axis.
        pairs: per training epoch.
        validation_pairs: the same in every epoch, never drawn in training.
        shapes_share: of the pairs, those made of random shapes although there are maps.
        across: of the other pairs, those of two different maps, whose labels then mean the same.
        mirrored: whether each map counts as its mirror image too, the first axis (left, right) turned around.
        recipe: how far the images of a pair differ, or its plain values.
        batch_size: in training; validation takes one pair at a time.
        num_workers: processes that make pairs; with 0, they are made on the training's device.
        seed: of every draw.
    """

    def __init__(
        self,
        spec: InputSpec | Mapping[str, Any] | None = None,
        labels: Sequence[str | Path] | str | None = None,
        shape: int | Sequence[int] = 48,
        pairs: int = 256,
        validation_pairs: int = 8,
        shapes_share: float = 0.5,
        across: float = 0.0,
        mirrored: bool = False,
        recipe: LabelRecipe | Mapping[str, Any] | None = None,
        batch_size: int = 1,
        num_workers: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__(spec, batch_size, num_workers, seed)
        if self.spec.spacing is None:
            raise InputError("data.spec.spacing: pairs made of label maps need one")
        if isinstance(labels, str | Path) and labels != "sample":
            raise InputError(f"data.labels: a list of files is needed, such as [{labels}], or sample")
        self.labels = [sample_path(name) for name in _SAMPLE_LABELS] if labels == "sample" else list(labels or ())
        self.shape = (shape,) * self.spec.ndim if isinstance(shape, int) else tuple(shape)
        if len(self.shape) != self.spec.ndim or not all(isinstance(n, int) and n > 7 for n in self.shape):
            raise InputError(f"data.shape: {self.spec.ndim} numbers of voxels, 8 or more, are needed, got {shape!r}")
        self.pairs = pairs
        self.validation_pairs = validation_pairs
        self.shapes_share = shapes_share
        self.across = across
        self.mirrored = mirrored
        self.recipe = recipe if isinstance(recipe, LabelRecipe) else LabelRecipe(**(recipe or {}))
        self._maps: list[Tensor] | None = None

    def setup(self, stage: str | None = None) -> None:
        """Read the label maps, once."""
        if self._maps is None:
            maps = read_label_maps(self.labels, self.spec, self.shape, _SLICE_HEIGHTS)
            self._maps = maps + [labels.flip(2) for labels in maps if self.mirrored]

    def dataset(self, training: bool = True) -> LabelPairs:
        """The pairs of an epoch, or the fixed pairs for validation."""
        self.setup()
        assert self._maps is not None and self.spec.spacing is not None
        length = self.pairs if training else self.validation_pairs
        here = self.trainer is not None and self.num_workers == 0
        device = self.trainer.strategy.root_device if here else "cpu"  # type: ignore[union-attr]
        return LabelPairs(
            self._maps,
            self.shape,
            self.spec.spacing,
            length,
            self.recipe,
            self.shapes_share,
            self.across,
            self.seed,
            training,
            device,
        )


class PairsData(_Pairs):
    """Pairs of a study (``docs/data.md``), of any mix of shapes, spacings and orientations.

    Args:
        pairs: a table (``docs/table.md``), a Learn2Reg ``NAME_dataset.json``, or an object that lists images or pairs
            (:class:`regnet.data.Folder`, :class:`regnet.data.Bids`). Rows without a split, or with ``train``, train;
            ``val`` validates (else the training pairs do), ``test`` tests.
        spec: the input contract, or its plain values.
        pairing: how images that are not paired make pairs: ``all``, ``within`` a group, or with the ``atlas``.
        atlas: the moving image of all pairs: id of an image of the study, or a file.
        atlas_labels: its label map, where it is a file.
        split: shares of the people by split, such as ``{val: 0.1}``, instead of the rows' own split.
        length: pairs in a training epoch; None: all that are listed, or one for each fixed image.
        validation_length: the same for validation and test, where always the same pairs are used.
        space: of landmarks: ``ras``, ``lps``, ``voxel`` or ``voxel1``; None: as their files say.
        augmentation: changes training batches on their device.
        cache: folder where prepared images are kept, or a :class:`regnet.data.Cache`.
        batch_size: in training; validation takes one pair at a time. Smaller images are padded to the largest.
        num_workers: processes that read and prepare.
        seed: of every draw.
    """

    def __init__(
        self,
        pairs: str | Path | Listing,
        spec: InputSpec | Mapping[str, Any] | None = None,
        pairing: str = "all",
        atlas: str | Path | None = None,
        atlas_labels: str | Path | None = None,
        split: Mapping[str, float] | None = None,
        length: int | None = None,
        validation_length: int | None = None,
        space: str | None = None,
        augmentation: Augmentation | None = None,
        cache: str | Path | Cache | None = None,
        batch_size: int = 1,
        num_workers: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__(spec, batch_size, num_workers, seed)
        self.pairs = Path(pairs) if isinstance(pairs, str) else pairs
        self.lengths = {True: length, False: validation_length}
        self.space = space
        self.augmentation = augmentation
        self.cache = Cache(cache) if isinstance(cache, str | Path) else cache
        self._settings = (pairing, atlas, atlas_labels, split, seed)
        self._study: Study | None = None

    def setup(self, stage: str | None = None) -> None:
        """Read the list of pairs, once; images are read when they are needed."""
        if self._study is not None:
            return
        self._study = Study(self.pairs, *self._settings)
        if not self._study.pairs("", "train"):
            raise InputError(f"{self.pairs}: no row has the split 'train' (or none at all)")
        if not self._study.pairs("val"):
            _log.warning("%s: no row has the split 'val': validating on the training pairs", self.pairs)

    def dataset(self, *splits: str, training: bool = False) -> TablePairs:
        """The pairs of some splits."""
        self.setup()
        assert self._study is not None
        rows = self._study.pairs(*splits)
        return TablePairs(rows, self.spec, self.seed, training, self.lengths[training], self.cache, self.space)

    def train_dataloader(self) -> DataLoader[Any]:
        """The training pairs, shuffled."""
        return self._loader(self.dataset("", "train", training=True), training=True)

    def val_dataloader(self) -> DataLoader[Any]:
        """The validation pairs, in order."""
        self.setup()
        splits = ("val",) if self._study and self._study.pairs("val") else ("", "train")
        return self._loader(self.dataset(*splits), training=False)

    def test_dataloader(self) -> DataLoader[Any]:
        """The test pairs, in order."""
        self.setup()
        if not self._study or not self._study.pairs("test"):
            raise InputError(f"{self.pairs}: no row has the split 'test'")
        return self._loader(self.dataset("test"), training=False)

    def on_after_batch_transfer(self, batch: dict[str, Any], dataloader_idx: int) -> dict[str, Any]:
        """Augment a training batch, on the device it is on."""
        if self.augmentation is None or self.trainer is None or not self.trainer.training:
            return batch
        return self.augmentation(batch, self.seed)


def _axial(images: Sequence[Image], labels: Sequence[Image | None]) -> tuple[list[Image], list[Image | None]]:
    """Slices of every volume; what is 2-D already stays."""
    flat_images: list[Image] = []
    flat_labels: list[Image | None] = []
    for image, own in zip(images, labels, strict=True):
        if image.grid.ndim == 2:
            flat_images.append(image)
            flat_labels.append(own)
            continue
        for height in _SLICE_HEIGHTS:
            flat_images.append(axial_slice(image, height))
            flat_labels.append(None if own is None else axial_slice(own, height))
    return flat_images, flat_labels
