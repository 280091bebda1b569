"""Which weights training begins with, and which it leaves alone."""

import logging
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from torch import nn

from regnet.errors import InputError
from regnet.io.weights import find_weights, read_weights
from regnet.training.configuration import nearest

_log = logging.getLogger(__name__)


def warm_start(model: nn.Module, path: str | Path) -> None:
    """Begin with the weights of a checkpoint; what the model has besides, or in another shape, stays as it is, and the
    log says so.

    Args:
        model: whose weights are replaced.
        path: a checkpoint, a model file, or the folder of a run, whose best checkpoint is taken.

    Raises:
        InputError: it cannot be read, or no weight of it fits.
    """
    path = find_weights(Path(path))
    given, _ = read_weights(path)
    own = model.state_dict()
    fitting = {name: value for name, value in given.items() if name in own and value.shape == own[name].shape}
    if not fitting:
        raise InputError(f"init_from: {path}: none of its {len(given)} weights fits this model: set the same model")
    model.load_state_dict(fitting, strict=False)
    new = sorted(own.keys() - fitting.keys())
    if new:
        _log.warning("init_from: %s: %d of %d weights taken; new are %s", path, len(fitting), len(own), ", ".join(new))


def freeze(model: nn.Module, patterns: Iterable[str]) -> None:
    """Leave the parameters alone whose names match, such as ``network.down.*``.

    Args:
        model: whose parameters they are.
        patterns: as in file names; ``*`` matches dots too.

    Raises:
        InputError: a pattern matches nothing, or nothing is left to train.
    """
    parameters = dict(model.named_parameters())
    for pattern in patterns:
        matching = [name for name in parameters if fnmatchcase(name, pattern)]
        if not matching:
            raise InputError(f"freeze: no parameter matches {pattern!r}{nearest(pattern, parameters)}")
        for name in matching:
            parameters[name].requires_grad_(False)
    if not any(parameter.requires_grad for parameter in parameters.values()):
        raise InputError("freeze: no parameter is left to train")
