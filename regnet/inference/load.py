"""A trained network and the input contract that travels with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from regnet.data.spec import InputSpec
from regnet.errors import InputError
from regnet.inference.manifest import sha256
from regnet.io.weights import find_weights, read_weights
from regnet.models.model import Model
from regnet.models.registry import build


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


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
