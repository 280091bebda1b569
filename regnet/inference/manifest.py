"""What is known of each pair of a cohort: a small JSON file that says what was made, of what, and how."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from regnet.errors import InputError
from regnet.io import atomic_path
from regnet.io.within import is_within

DONE, FAILED, RUNNING = "done", "failed", "running"

Manifest = dict[str, Any]
"""``id, status, error, warnings, seconds, told``; ``version, settings``; ``inputs`` and ``outputs`` by path; ``pair``:
the row of the table."""


def write_manifest(path: Path, manifest: Mapping[str, Any]) -> None:
    """Write a manifest, whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    with atomic_path(path, overwrite=True) as temporary:
        temporary.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def read_manifest(path: Path) -> Manifest | None:
    """Read a manifest; None: there is none, or it is not one of ours."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    needed = {"id", "status", "version", "settings", "inputs", "outputs"}
    if not isinstance(content, dict) or not needed <= content.keys():
        return None
    about = [content["inputs"], content["outputs"]]
    described = all(isinstance(each, dict) and all(isinstance(one, dict) for one in each.values()) for each in about)
    return content if described else None


def read_manifests(folder: Path) -> dict[str, Manifest]:
    """The manifests of a cohort by id, of all its shards.

    Args:
        folder: what ``regnet register --pairs`` got as ``--out``.

    Raises:
        InputError: there are none.
    """
    found = [read_manifest(path) for path in sorted((folder / "manifests").glob("*.json"))]
    if not any(found):
        raise InputError(f"{folder}: has no manifests of `regnet register --pairs`")
    return {manifest["id"]: manifest for manifest in found if manifest}


def written_before(path: Path) -> tuple[Path, ...]:
    """The outputs that a manifest lists, as far as they lie in the cohort's folder, whoever wrote it."""
    folder = path.parent.parent
    files = [folder / name for name in (read_manifest(path) or {"outputs": ()})["outputs"]]
    return tuple(file for file in files if is_within(folder, file) and file.parent != path.parent)


def is_current(path: Path, version: str, settings: Mapping[str, Any], inputs: Iterable[Path]) -> bool:
    """Whether what a manifest tells of is there, complete, and what would be made again."""
    manifest, folder = read_manifest(path), path.parent.parent
    if manifest is None or manifest["status"] != DONE:
        return False
    if (manifest["version"], manifest["settings"]) != (version, json.loads(json.dumps(settings))):
        return False
    names = [os.fspath(path.resolve()) for path in inputs]
    if sorted(manifest["inputs"]) != sorted(set(names)):
        return False
    if len(written_before(path)) != len(manifest["outputs"]):
        return False
    return all(is_same(folder / name, about) for name, about in (manifest["inputs"] | manifest["outputs"]).items())


def describe_inputs(paths: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """Size, time of change and SHA-256 of files, by their full path."""
    return {os.fspath(path.resolve()): {**_stamp(path), "sha256": sha256(path)} for path in paths}


def describe_outputs(paths: Iterable[Path], folder: Path) -> dict[str, dict[str, Any]]:
    """Size and time of change of files, by their path within the cohort's folder, which may move."""
    return {os.path.relpath(path, folder): _stamp(path) for path in paths}


def sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal.

    Raises:
        InputError: it cannot be read.
    """
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    return digest.hexdigest()


def _stamp(path: Path) -> dict[str, int]:
    status = path.stat()
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns}


def is_same(path: Path, about: Mapping[str, Any]) -> bool:
    """Of the same size and time of change, or, for an input that was copied anew, of the same bytes."""
    try:
        now = _stamp(path)
    except OSError:
        return False
    if now["size"] != about.get("size"):
        return False
    return now["mtime_ns"] == about.get("mtime_ns") or ("sha256" in about and sha256(path) == about["sha256"])
