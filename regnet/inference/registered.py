"""From the manifest of a pair to the files it was made of and that were made: a case to be measured or shown."""

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from regnet.data.table import PAIR_FILES, Pair
from regnet.errors import InputError
from regnet.inference.case import Case, Protocol
from regnet.inference.manifest import is_same

# What was asked for, and the ends of the names that it has in the folder: the map's files in the order of ANTs.
_MAPS = {
    "warp": ("",),
    "displacement": ("",),
    "composite": ("",),
    "prefix": ("1Warp.nii.gz", "0GenericAffine.mat"),
}


def describe_pair(pair: Pair) -> dict[str, Any]:
    """A row of a table as plain words, with full paths; what the row does not have is left out."""
    words: dict[str, Any] = {}
    for each in fields(pair):
        value = getattr(pair, each.name)
        if each.name in ("moving", "fixed"):
            words[each.name] = [os.fspath(path.resolve()) for path in value]
        elif value:
            words[each.name] = os.fspath(value.resolve()) if isinstance(value, Path) else value
    return words


def case_of(manifest: Mapping[str, Any], folder: Path) -> Case:
    """The case that a manifest tells of.

    Args:
        manifest: of a pair that is done.
        folder: the cohort's, where the outputs are.

    Raises:
        InputError: the manifest does not say which image is which, no map was written, or a file is not there.
    """
    if "pair" not in manifest:
        raise InputError(f"{manifest['id']}: its manifest does not say which image is which: register it again")
    words = dict(manifest["pair"])
    paths = {name: Path(value) for name, value in words.items() if name in PAIR_FILES}
    images = {name: tuple(Path(path) for path in words[name]) for name in ("moving", "fixed")}
    pair = Pair(**(words | paths | images))
    names = manifest["settings"].get("files", {})
    kind = next((kind for kind in _MAPS if kind in names), None)
    if kind is None:
        raise InputError(f"{manifest['id']}: has no map, only {', '.join(names)}; register with --warp to see it")
    transforms = tuple(folder / (names[kind] + end) for end in _MAPS[kind])
    inverse = folder / names["inverse_warp"] if "inverse_warp" in names else None
    case = Case(pair, transforms, inverse)
    for path in case.files():
        if not path.is_file():
            raise InputError(f"{path}: is not there any more")
    return case


def protocol_of(manifest: Mapping[str, Any]) -> Protocol:
    """How the pair of a manifest is measured: one of Learn2Reg's as Learn2Reg does."""
    is_theirs = "displacement" in manifest["settings"].get("files", {})
    return Protocol("learn2reg", "voxel") if is_theirs else Protocol()


def changed(manifest: Mapping[str, Any], folder: Path) -> list[str]:
    """A line for every input or output that is not any more what it was."""
    files = manifest["inputs"] | manifest["outputs"]
    return [f"{name} has changed since" for name, about in files.items() if not is_same(folder / name, about)]
