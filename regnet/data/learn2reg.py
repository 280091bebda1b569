"""Learn2Reg's lists of pairs, and the names of its displacement files."""

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regnet.data.table import Pair, Row, Subject
from regnet.errors import InputError
from regnet.io import atomic_path, open_image, read_header

SPLITS = {"train": "training_paired_images", "val": "registration_val", "test": "registration_test"}
_CONFIGURATION = "eval_pairs"
_ALSO = {"val": "validation"}  # where LUMIR keeps its validation pairs


def read_dataset(path: str | Path, split: str | None = None) -> tuple[Pair, ...]:
    """Read the pairs of a task.

    Args:
        path: ``NAME_dataset.json``, or the ``evaluation_config.json`` of the official script; images are named from its
            folder. What belongs to ``imagesTr/CASE.nii.gz`` is taken where it exists: ``labelsTr/CASE.nii.gz``,
            ``masksTr/CASE.nii.gz`` and, in voxels, ``landmarksTr/CASE.csv`` (else ``keypointsTr/CASE.csv``).
        split: ``train``, ``val`` or ``test``, or the name of the list, such as ``registration_val``; None: ``val``. A
            configuration has one list.

    Returns:
        The pairs, in order; ``id`` is fixed subject, fixed modality, moving subject and moving modality, such as
        ``0001_0000_0002_0000``.

    Raises:
        InputError: not such a file, no such split in it, or an image is missing.
    """
    path = Path(path)
    listed = _listed(path, _read(path), split)
    pairs = tuple(_pair(path, entry, split or "val") for entry in listed)
    if len({pair.id for pair in pairs}) < len(pairs):
        raise InputError(f"{path}: a pair comes twice")
    return pairs


def read_task(path: str | Path) -> tuple[Row, ...]:
    """Read every image and pair of a task, for training.

    Args:
        path: ``NAME_dataset.json``.

    Returns:
        The pairs to train on, or, where it lists none, the images, of the split ``train``; and the pairs of the splits
        ``val`` and ``test`` as far as there are any. What belongs to an image is found as by :func:`read_dataset`.

    Raises:
        InputError: not such a file, an image is missing, or there is nothing to train on.
    """
    path = Path(path)
    content = _read(path)
    if not is_task(content):
        raise InputError(f"{path}: not a Learn2Reg dataset: has no list {', '.join(SPLITS.values())} or training")
    rows: list[Row] = []
    for split, key in SPLITS.items():
        entries = content.get(key) or content.get(_ALSO.get(split, "")) or []
        rows += [_pair(path, entry, split) for entry in entries if isinstance(entry, Mapping) and "fixed" in entry]
        if split == "train" and not rows:
            # images that pairs are validated or tested on are listed among those for training, too
            apart = {
                str(entry[side])
                for key in ("registration_val", "validation", "registration_test")
                for entry in content.get(key) or []
                if isinstance(entry, Mapping) and "fixed" in entry
                for side in ("fixed", "moving")
                if side in entry
            }
            rows += [_subject(path, entry) for entry in content.get("training") or [] if _name(entry) not in apart]
    if not any(row.split == "train" for row in rows):
        raise InputError(f"{path}: lists nothing to train on (training_paired_images or training)")
    return tuple(rows)


def is_task(content: Any) -> bool:
    """Whether the content of a JSON file is that of a ``NAME_dataset.json``."""
    return isinstance(content, Mapping) and any(key in content for key in (*SPLITS.values(), "training"))


def displacement_names(pair: Pair) -> list[str]:
    """The names that a pair's displacement may have in a submission, without suffix, the full one first."""
    fixed, moving = _case(pair.fixed[0]), _case(pair.moving[0])
    if fixed is None or moving is None:
        return []
    names = [f"disp_{'_'.join(fixed)}_{'_'.join(moving)}"]
    if fixed[1] == moving[1] or (fixed[1], moving[1]) == ("0000", "0001"):
        names.append(f"disp_{fixed[0]}_{moving[0]}")
    return names


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{path}: not a JSON file ({error})") from error


def write_submission(folder: Path, pairs: Sequence[Pair]) -> Path:
    """Check the displacements of a task as its evaluation reads them, and pack them.

    Args:
        folder: with a file of the first of :func:`displacement_names` for every pair, and no other displacement.
        pairs: all of the split.

    Returns:
        ``submission.zip`` in that folder.

    Raises:
        InputError: a displacement is missing or one too many, does not lie on the fixed image's voxels, is not float32,
            or not finite.
    """
    names = [f"{displacement_names(pair)[0]}.nii.gz" for pair in pairs]
    for stranger in sorted({file.name for file in folder.glob("disp_*")} - set(names)):
        raise InputError(f"{folder / stranger}: belongs to no pair of this split; take it away")
    for pair, name in zip(pairs, names, strict=True):
        file, shape = open_image(folder / name), read_header(pair.fixed[0]).grid.shape
        if (*file.grid.shape, file.count) != (*shape, len(shape)) or file.stored_dtype != np.float32:
            raise InputError(f"{file.name}: {file.grid.shape} x {file.count} of {file.stored_dtype} is not {shape} x 3")
        if not all(bool(volume.isfinite().all()) for volume in file.volumes()):
            raise InputError(f"{file.name}: the field has values that are NaN or infinite")
    packed = folder / "submission.zip"
    with atomic_path(packed, overwrite=True) as temporary, zipfile.ZipFile(temporary, "w") as archive:  # gz is packed
        for name in names:
            archive.write(folder / name, name)
    return packed


def _listed(path: Path, content: Any, split: str | None) -> list[Any]:
    if split not in (None, *SPLITS, *SPLITS.values()):
        raise InputError(f"{path}: no split {split!r}; Learn2Reg has {', '.join((*SPLITS, *SPLITS.values()))}")
    keys = [SPLITS.get(split, split)] if split else [_CONFIGURATION, SPLITS["val"]]
    found = [content[key] for key in keys if isinstance(content, Mapping) and content.get(key)]
    if not found:
        raise InputError(f"{path}: has no list of pairs {' or '.join(keys)}; other splits: --split train|val|test")
    return list(found[0])


def _pair(path: Path, entry: Any, split: str) -> Pair:
    if not isinstance(entry, Mapping) or not {"fixed", "moving"} <= entry.keys():
        raise InputError(f"{path}: a pair names a fixed and a moving image, got {entry}")
    images = {side: _image(path, side, str(entry[side])) for side in ("moving", "fixed")}
    cases = [_case(images[side]) or (_stem(images[side]),) for side in ("fixed", "moving")]
    parts: dict[str, Any] = {
        f"{side}_{part}": file for side, image in images.items() for part, file in _parts(image).items()
    }
    name = "_".join(word for case in cases for word in case)
    return Pair(id=name, moving=(images["moving"],), fixed=(images["fixed"],), split=split, **parts)


def _subject(path: Path, entry: Any) -> Subject:
    image = _image(path, "image", _name(entry))
    return Subject(_stem(image), (image,), split="train", **_parts(image))


def _name(entry: Any) -> str:
    return str(entry.get("image", "")) if isinstance(entry, Mapping) else str(entry)


def _image(path: Path, side: str, name: str) -> Path:
    image = path.parent / name
    if not image.is_file():
        raise InputError(f"{path}: {side} {image} does not exist")
    return image


def _parts(image: Path) -> dict[str, Any]:
    """What belongs to an image."""
    return {
        "labels": _beside(image, ("labels", ".nii.gz")),
        "mask": _beside(image, ("masks", ".nii.gz")),
        "points": _beside(image, ("landmarks", ".csv"), ("keypoints", ".csv")),
    }


def _beside(image: Path, *places: tuple[str, str]) -> Path | None:
    """The first file that exists in a sister folder of ``imagesTr``."""
    for folder, suffix in places:
        file = image.parent.with_name(image.parent.name.replace("images", folder)) / (_stem(image) + suffix)
        if file != image and file.is_file():
            return file
    return None


def _case(image: Path) -> tuple[str, str] | None:
    """Subject and modality of ``NAME_0001_0000.nii.gz``."""
    words = _stem(image).split("_")
    return (words[-2], words[-1]) if len(words) > 2 and all(word.isdigit() for word in words[-2:]) else None


def _stem(image: Path) -> str:
    return image.name.removesuffix(".gz").removesuffix(".nii")
