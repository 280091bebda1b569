"""The weights of a model, from whatever file holds them: a checkpoint, the folder of a run, a model file."""

from pathlib import Path
from typing import Any

from torch import Tensor

from regnet.errors import InputError
from regnet.io.checkpoint import read_checkpoint
from regnet.io.model_file import SUFFIX, read_model

_PREFIX = "model."  # of the model's weights in a checkpoint of the LightningModule


def read_weights(file: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The weights of a model, averaged ones where training averaged, and what is known of it.

    Returns:
        The weights by name; and at least ``model``, ``spec`` and ``regnet``, as plain values, ``epoch`` where known.

    Raises:
        InputError: there is no such file, or it is not one of ours.
    """
    if file.suffix == SUFFIX:
        return read_model(file)
    if file.suffix in (".onnx", ".pt2"):
        raise InputError(f"{file}: is for other programs; register with the run, or with a model file ({SUFFIX})")
    checkpoint = read_checkpoint(file)
    own = {name: value for name, value in checkpoint["state_dict"].items() if name.startswith(_PREFIX)}
    about = {**checkpoint["hyper_parameters"], **({"epoch": checkpoint["epoch"]} if "epoch" in checkpoint else {})}
    return {name.removeprefix(_PREFIX): value for name, value in own.items()}, about


def find_weights(path: Path) -> Path:
    """The file that ``path`` names: itself, or the best checkpoint, else the last, of a run's folder.

    Raises:
        InputError: there is no checkpoint in the folder.
    """
    if not path.is_dir():
        return path
    folder = path / "checkpoints" if (path / "checkpoints").is_dir() else path
    best = sorted(folder.glob("best*.ckpt"), key=lambda file: file.stat().st_mtime)
    last = folder / "last.ckpt"
    if best:
        return best[-1]
    if last.is_file():
        return last
    raise InputError(f"{path}: no checkpoint in this folder (looked for {folder}/best*.ckpt and last.ckpt)")
