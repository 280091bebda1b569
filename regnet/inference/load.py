"""A trained network and the input contract that travels with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regnet.data.spec import InputSpec
from regnet.errors import InputError
from regnet.io.checkpoint import read_checkpoint
from regnet.models.model import Model
from regnet.models.registry import build

_PREFIX = "model."


@dataclass(frozen=True)
class LoadedModel:
    """A network ready for inference.

    Attributes:
        model: the registration model, in evaluation mode, its weights frozen.
        spec: what its input has to be; :func:`regnet.data.prepare` makes an image so.
        path: the checkpoint it came from.
    """

    model: Model
    spec: InputSpec
    path: Path


def load_model(path: str | Path, trust: Sequence[str] = ()) -> LoadedModel:
    """Load a network from a checkpoint or from a training run's folder.

    Args:
        path: a ``.ckpt`` file, or the folder of a run; of a run the best checkpoint is taken, else the last one.
        trust: packages whose own network classes may be built; regnet's are always allowed.

    Returns:
        The model in evaluation mode on the CPU, with its input contract.

    Raises:
        InputError: there is no such file, it is not one of our checkpoints, or its weights do not fit its network.
    """
    file = _checkpoint_of(Path(path))
    checkpoint = read_checkpoint(file)
    about, weights = checkpoint["hyper_parameters"], checkpoint["state_dict"]
    try:
        model = build(about["model"], trust=trust)
        spec = InputSpec.from_dict(about["spec"])
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{file}: its network cannot be built: {_one_line(error)}") from error
    own = {name.removeprefix(_PREFIX): value for name, value in weights.items() if name.startswith(_PREFIX)}
    try:
        model.load_state_dict(own)
    except RuntimeError as error:
        raise InputError(f"{file}: its weights do not fit its network: {_one_line(error)}") from error
    model.eval().requires_grad_(False)
    return LoadedModel(model, spec, file)


def _checkpoint_of(path: Path) -> Path:
    """The checkpoint file that ``path`` names: itself, or the best, else the last, of a run's folder."""
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
