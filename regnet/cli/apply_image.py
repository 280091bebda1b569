"""Images along a chain of transforms, in slabs of the reference's grid: large ones cost themselves and little more."""

import itertools
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from regnet.cli.options import background_of
from regnet.errors import InputError
from regnet.io import Image, ImageFile, image_writer
from regnet.io.writer import stored_type
from regnet.spatial import Affine, Displacement, Grid, Transform, chain, coefficients_, reorient

INTERPOLATIONS = {"nearest": 0, "linear": 1, "cubic": 3, "label": None, **{str(order): order for order in range(8)}}
_SLAB = 1 << 21  # voxels of the result at a time
_KEPT = 1 << 26  # voxels up to which the map is kept from one volume of a series to the next
_EXACT = 2**24  # whole numbers up to here are float32's
_DISPLACEMENT, _VECTOR = 1006, 1007  # intents: components along RAS, along LPS


@dataclass(frozen=True)
class Work:
    """What is to be done with an image.

    Args:
        reference: whose grid the result has.
        transforms: in the order of ANTs.
        order: of the spline; None: the label that weighs most.
        background: the value outside the moving image's view; None: 0, or the minimum of an image that goes below.
        vectors: how vectors turn; None: as the file says, ``"jacobian"`` if it holds vectors.
        space: of vectors in a file that does not say: ``"ras"`` or ``"lps"``.
        time_index: the only volume wanted of a series; None: all.
    """

    reference: ImageFile
    transforms: Sequence[Transform]
    order: int | None
    background: float | None = None
    vectors: str | None = None
    space: str | None = None
    time_index: int | None = None

    @property
    def transform(self) -> Transform:
        """The whole chain."""
        return chain(self.transforms) if self.transforms else Affine.identity(self.reference.grid.ndim)


def check_work(moving: ImageFile, work: Work) -> None:
    """Refuse what does not go with an image; to be asked before anything large is read.

    Raises:
        InputError: there is no such volume, or the file's vectors cannot be understood.
    """
    if work.time_index is not None and not 0 <= work.time_index < moving.count:
        raise InputError(f"--time-index {work.time_index}: {moving.name} has {moving.count} volumes, from 0")
    if _mode(moving, work) is None:
        return
    if moving.count != moving.grid.ndim:
        raise InputError(f"{moving.name}: holds {moving.count} volumes; vectors need {moving.grid.ndim}")
    if work.order is None or work.time_index is not None:
        raise InputError(f"{moving.name}: holds vectors; --interp label and --time-index do not go with them")
    if _space(moving, work) not in ("ras", "lps"):
        raise InputError(f"{moving.name}: does not say which way its vectors point; give --space ras or lps")


def _mode(moving: ImageFile, work: Work) -> str | None:
    """How vectors turn; None: these are none."""
    return work.vectors or ("jacobian" if moving.holds_vectors else None)


def _space(moving: ImageFile, work: Work) -> str | None:
    return {_DISPLACEMENT: "ras", _VECTOR: "lps"}.get(moving.intent, work.space)


def apply_image(moving: ImageFile, work: Work, out: Path) -> None:
    """Resample an image, label map, series or vector image, and write it.

    Raises:
        InputError: a damaged file, or options that do not go with it.
    """
    if (mode := _mode(moving, work)) is not None:
        _write_vectors(moving, work, mode, out)
    else:
        _write_volumes(moving, work, out)


def _write_volumes(moving: ImageFile, work: Work, out: Path) -> None:
    first, rest = _read(moving, work)
    contents = moving if work.time_index is None else None
    count = 1 if contents is None else moving.count
    image = Image(first[None], moving.grid, moving.path, moving.header)
    is_grey = first.is_floating_point()
    background = background_of(image, work.background) if is_grey else _whole(work.background, image)
    dtype = _type_on_disk(image, background, count, out)
    parts, held, seen = _parts(work, count), False, False
    with image_writer(out, work.reference, dtype, contents) as put:
        for volume in itertools.chain([first], rest):
            finite = is_grey and bool(volume.isfinite().all())
            held = held or bool((volume != background).any())
            if is_grey:
                coefficients_(volume[None, None], work.order or 0)
            for transform, slab in parts:
                part = _resampled(volume, moving.grid, work.order, transform, slab, background)
                _check_held(part, dtype, moving, out)
                if finite:
                    _check_finite(part, moving)
                seen = seen or bool((part != background).any())
                put(part)
    if held and not seen:
        _warn_of_nothing(moving, work)


def _read(moving: ImageFile, work: Work) -> tuple[Tensor, Iterator[Tensor]]:
    """The first volume and the others: with their integers where labels are meant.

    That is for ``label``, and for ``nearest`` when the file holds integers, or whole numbers that float32 does not.
    """

    def volumes(labels: bool) -> Iterator[Tensor]:
        found = moving.volumes(labels)
        return found if work.time_index is None else itertools.islice(found, work.time_index, work.time_index + 1)

    labels = work.order is None or (work.order == 0 and moving.holds_integers)
    rest = volumes(labels)
    first = next(rest)
    if work.order == 0 and not labels:
        low, high = (float(end) for end in torch.aminmax(first))
        stored = moving.stored_dtype
        wide = max(-low, high) >= _EXACT or stored is None or stored.kind in "iu"
        if wide and torch.equal(first, first.round()):
            rest = volumes(labels=True)
            first = next(rest)
    return first, rest


def _resampled(
    volume: Tensor, source: Grid, order: int | None, transform: Transform, slab: Grid, background: float
) -> Tensor:
    if volume.is_floating_point():
        return transform.apply(
            volume[None, None], source, slab, order=order or 0, background=background, prefilter=False
        )[0, 0]
    mode = "linear" if order is None else "nearest"
    return transform.apply_labels(volume[None, None], source, slab, mode=mode, background=int(background))[0, 0]


def _parts(work: Work, count: int) -> list[tuple[Transform, Grid]]:
    """The slabs of the reference's grid, each with its map: sampled once where several volumes need it."""
    grid, transform = work.reference.grid, work.transform
    slabs = list(grid.slabs(_SLAB))
    if isinstance(transform, Displacement) and transform.grid == grid:  # nothing to sample, only to cut
        flows = transform.flow.split([slab.shape[-1] for slab in slabs], dim=-1)
        return [(Displacement(flow, slab), slab) for flow, slab in zip(flows, slabs, strict=True)]
    keep = count > 1 and grid.voxels <= _KEPT
    return [(transform.on(slab) if keep else transform, slab) for slab in slabs]


def _type_on_disk(image: Image, background: float, count: int, out: Path) -> np.dtype:
    data, stored = image.data, image.stored_dtype
    if data.is_floating_point():
        return stored_type(data.dtype, 0, 0, None, out)
    if count > 1 and (stored is None or stored.kind == "f" or stored.itemsize == 8):
        return np.dtype(np.int32)  # the volumes to come are not known
    low, high = (int(end) for end in torch.aminmax(data))
    return stored_type(data.dtype, min(low, int(background)), max(high, int(background)), stored, out)


def _check_held(part: Tensor, dtype: np.dtype, moving: ImageFile, out: Path) -> None:
    if part.dtype == torch.int64 and dtype.kind in "iu":
        low, high = (int(end) for end in torch.aminmax(part))
        if low < np.iinfo(dtype).min or high > np.iinfo(dtype).max:
            raise InputError(
                f"{out}: label values from {low} to {high} of {moving.name} do not fit into {dtype}; renumber them"
            )


def _check_finite(part: Tensor, moving: ImageFile) -> None:
    """Refuse what interpolation between finite numbers near the end of float32 has made infinite."""
    if not bool(part.isfinite().all()):
        raise InputError(f"{moving.name}: its values are too large to be interpolated in float32; scale it first")


def _warn_of_nothing(moving: ImageFile, work: Work) -> None:
    warnings.warn(
        f"every voxel of the result is background: nothing of {moving.name}, or only background, comes into the view "
        f"of {work.reference.name}; is the direction right (:inverse)?",
        stacklevel=2,
    )


def _write_vectors(moving: ImageFile, work: Work, mode: str, out: Path) -> None:
    """Components are resampled together, turned, and written as they came: in their order, space and intent."""
    ndim, order, transform = moving.grid.ndim, work.order or 0, work.transform
    flip = torch.tensor([-1.0, -1.0, 1.0][:ndim]) if _space(moving, work) == "lps" else torch.ones(ndim)
    vectors = torch.stack([sign * volume for sign, volume in zip(flip, moving.volumes(), strict=True)])
    coefficients_(vectors[None], order)
    parts = []
    for slab in work.reference.grid.slabs(_SLAB):
        there = transform.apply(vectors[None], moving.grid, slab, order, work.background or 0.0, prefilter=False)[0]
        parts.append(reorient(there, transform, slab, mode))
    result = torch.cat(parts, dim=-1)
    if bool(vectors.isfinite().all()):
        _check_finite(result, moving)
    if bool(vectors.any()) and not bool((result != (work.background or 0.0)).any()):
        _warn_of_nothing(moving, work)
    with image_writer(out, work.reference, stored_type(result.dtype, 0, 0, None, out), moving) as put:
        for sign, component in zip(flip, result, strict=True):
            put(sign * component)


def _whole(background: float | None, labels: Image) -> int:
    if background is None:
        return 0
    if not background.is_integer():
        raise InputError(f"--background {background:g}: a label map needs a whole number")
    held = torch.iinfo(labels.data.dtype)
    if not held.min <= background <= held.max:
        raise InputError(f"--background {background:g}: {labels.name} holds labels from {held.min} to {held.max}")
    return int(background)
