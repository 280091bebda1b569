"""A trained network and the input contract that travels with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from regnet.data.spec import InputSpec
from regnet.errors import InputError
from regnet.inference.manifest import sha256
from regnet.io.checkpoint import read_checkpoint
from regnet.io.model_file import SUFFIX, read_model
from regnet.models.model import Model
from regnet.models.registry import build

_PREFIX = "model."


@dataclass(frozen=True)
class LoadedModel:
    """A network ready for inference.

    Attributes:
        model: the registration model, in evaluation mode, its weights frozen.
        spec: what its input has to be; :func:`regnet.data.prepare` makes an image so.
        path: the checkpoint or model file it came from.
    """

    model: Model
    spec: InputSpec
    path: Path

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the file: which weights these are."""
        return sha256(self.path)


def load_model(path: str | Path, trust: Sequence[str] = ()) -> LoadedModel:
    """Load a network from a checkpoint, a model file, or a training run's folder.

    Args:
        path: a ``.ckpt`` or ``.safetensors`` file, or the folder of a run; of a run the best checkpoint is taken, else
            the last one.
        trust: packages whose own network classes may be built; regnet's are always allowed.

    Returns:
        The model in evaluation mode on the CPU, with its input contract.

    Raises:
        InputError: there is no such file, it is not one of ours, or its weights do not fit its network.
    """
    file = find_weights(Path(path))
    weights, about = read_weights(file)
    try:
        model = build(about["model"], trust=trust)
        spec = InputSpec.from_dict(about["spec"])
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{file}: its network cannot be built: {_one_line(error)}") from error
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise InputError(f"{file}: its weights do not fit its network: {_one_line(error)}") from error
    model.eval().requires_grad_(False)
    return LoadedModel(model, spec, file)


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


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
