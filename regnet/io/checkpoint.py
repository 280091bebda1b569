"""Checkpoints, opened without running anything that is in them."""

import zipfile
from pathlib import Path
from typing import Any

import torch

from regnet.errors import InputError

_NEEDED = ("model", "spec", "regnet")


def read_checkpoint(path: str | Path) -> dict[str, Any]:
    """Read a checkpoint of ours onto the CPU.

    Returns:
        The Lightning checkpoint: ``state_dict`` and, in ``hyper_parameters``, ``model``, ``spec`` and ``regnet`` (the
        version that wrote it).

    Raises:
        InputError: the file is missing, or not a regnet checkpoint.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such checkpoint")
    try:
        is_archive = zipfile.is_zipfile(path)
    except zipfile.BadZipFile:  # it looks like one, and is none
        is_archive = False
    if not is_archive:
        raise InputError(f"{path}: not a regnet checkpoint (damaged, or not written by torch)")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # damaged pickles raise whatever their bytes happen to mean
        raise InputError(f"{path}: not a regnet checkpoint (it holds more than tensors and plain values)") from error
    hyper = content.get("hyper_parameters") if isinstance(content, dict) else None
    if not isinstance(hyper, dict) or "state_dict" not in content or any(key not in hyper for key in _NEEDED):
        raise InputError(f"{path}: not a regnet checkpoint (no weights with their model and input spec)")
    return content
