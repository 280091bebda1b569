"""Model files to hand on: weights as safetensors, and what is known of them as JSON in the file's head."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from regnet.errors import InputError
from regnet.io.atomic import atomic_path

SUFFIX = ".safetensors"
_KEY = "regnet"  # under which the head holds our JSON
_NEEDED = ("model", "spec", "regnet")


def write_model(
    path: str | Path, weights: Mapping[str, Tensor], about: Mapping[str, Any], overwrite: bool = False
) -> None:
    """Write a model file, whole or not at all.

    Args:
        path: ends in ``.safetensors``.
        weights: by name.
        about: plain values; at least ``model``, ``spec`` and ``regnet`` (the version that wrote it).
        overwrite: replace what is there.

    Raises:
        InputError: it exists already, or cannot be written.
    """
    apart = {name: value.detach().cpu().clone().contiguous() for name, value in weights.items()}  # shared ones are not
    with atomic_path(path, overwrite) as temporary:
        save_file(apart, temporary, metadata={_KEY: json.dumps(about)})


def read_model(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a model file onto the CPU: the weights, and what is known of them. Nothing that is in it is run.

    Raises:
        InputError: the file is missing, damaged, or not one of ours.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such model file")
    try:
        with safe_open(path, "pt") as file:
            about = json.loads((file.metadata() or {}).get(_KEY, "null"))
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, RuntimeError) as error:
        raise InputError(f"{path}: not a model file (damaged, or no safetensors)") from error
    if not isinstance(about, dict) or any(key not in about for key in _NEEDED):
        raise InputError(f"{path}: safetensors without a regnet model and input spec; write it with `regnet export`")
    return weights, about
