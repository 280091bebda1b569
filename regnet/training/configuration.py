"""Checks on a composed configuration, and the way back from a run's folder to its configuration."""

import difflib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from regnet.errors import InputError
from regnet.io import read_checkpoint

KEYS = (
    *("data", "model", "loss", "optimizer", "scheduler", "trainer", "callbacks", "logger", "paths"),
    *("name", "seed", "objective", "direction", "compile", "ckpt_path", "init_from", "freeze", "test"),
)


def nearest(key: str, known: Iterable[str]) -> str:
    """A question to end a message with: the known key most like ``key``."""
    close = difflib.get_close_matches(key, list(known), n=1, cutoff=0.4)
    return f": did you mean {close[0]!r}?" if close else ""


def flat_keys(config: Any, prefix: str = "") -> Iterator[str]:
    """Every dotted key of a nested mapping, inner nodes included."""
    for key, value in config.items():
        yield prefix + str(key)
        if isinstance(value, Mapping):
            yield from flat_keys(value, f"{prefix}{key}.")


def check_keys(config: Mapping[str, Any], locate: Callable[[str], Any]) -> None:
    """Refuse what training would ignore or stumble over late.

    Args:
        config: resolved configuration, plain containers.
        locate: import path of a class -> class.

    Raises:
        InputError: a top-level key is not one of ``KEYS``, or a class has not the argument it is given; the message
            names the nearest one.
    """
    for key in config:
        if key not in KEYS:
            raise InputError(f"config: unknown key {key!r}{nearest(key, KEYS)}")
    for group, block in config.items():
        if group != "model":  # checked where it is built, as everywhere a model is loaded
            _check_arguments(block, group, locate)


def _check_arguments(block: Any, name: str, locate: Callable[[str], Any]) -> None:
    if not isinstance(block, Mapping):
        return
    for key, value in block.items():
        _check_arguments(value, f"{name}.{key}", locate)
    if "_target_" not in block:
        return
    parameters = inspect.signature(_class(block["_target_"], name, locate)).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for key in block:
        if not isinstance(key, str):
            raise InputError(f"config: a key of {name} reads as {key!r}: put quotes around it (YAML takes on for true)")
        if not key.startswith("_") and key not in parameters:
            known = [f"{name}.{parameter}" for parameter in parameters]
            raise InputError(f"config: unknown key '{name}.{key}'{nearest(f'{name}.{key}', known)}")


def _class(target: str, name: str, locate: Callable[[str], Any]) -> Any:
    try:
        return locate(target)
    except ImportError as error:
        home = target.rpartition(".")[0]
        if home not in sys.modules:
            raise InputError(f"config: {name}: {' '.join(str(error).split())}") from error
        known = [f"{home}.{each}" for each in dir(sys.modules[home])]
        raise InputError(f"config: {name}: there is no {target}{nearest(target, known)}") from error


def write_config(config: Mapping[str, Any], folder: Path) -> None:
    """Keep a run's resolved configuration as ``config.yaml`` in its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    OmegaConf.save(OmegaConf.create(dict(config)), folder / "config.yaml")


def read_run(folder: Path, overrides: Iterable[str] = ()) -> DictConfig:
    """The configuration that goes on with a run: its own, from its newest checkpoint that is whole.

    The folder may have been moved: paths below the old one are moved along.

    Args:
        folder: where the run's ``config.yaml`` and ``checkpoints/`` are.
        overrides: ``key=value``, such as ``trainer.max_epochs=100``.

    Raises:
        InputError: the folder is no run, no checkpoint can be read, or an override names no key of the run.
    """
    folder = folder.resolve()
    path = folder / "config.yaml"
    if not path.is_file():
        raise InputError(f"{folder}: not the folder of a run (no config.yaml)")
    config = OmegaConf.load(path)
    if not isinstance(config, DictConfig) or "paths" not in config:
        raise InputError(f"{path}: not the configuration of a run")
    config = OmegaConf.create(_moved(OmegaConf.to_container(config), config.paths.run_dir, str(folder)))
    OmegaConf.set_struct(config, True)
    for override in overrides:
        key, equals, _ = override.partition("=")
        if not equals:
            raise InputError(f"{override!r}: expected key=value")
        try:
            config.merge_with_dotlist([override])
        except OmegaConfBaseException as error:
            raise InputError(f"unknown key {key!r}{nearest(key, flat_keys(config))}") from error
    config.ckpt_path = str(newest_checkpoint(folder))
    return config


def checkpoints(folder: Path) -> list[Path]:
    """What a run has written to go on from: its own, and what Lightning saves before SLURM requeues a job."""
    return [*(folder / "checkpoints").glob("*.ckpt"), *folder.glob("hpc_ckpt_*.ckpt")]


def newest_checkpoint(folder: Path) -> Path:
    """The checkpoint of a run that is furthest on, of those that can be read.

    Raises:
        InputError: there is none.
    """
    found: list[tuple[Any, Path]] = []
    for path in checkpoints(folder):
        with suppress(InputError):
            found.append((_progress(path), path))
    if not found:
        raise InputError(f"{folder}: no checkpoint to go on from in {folder / 'checkpoints'}")
    return max(found)[1]


def _progress(path: Path) -> tuple[int, int, bool]:
    """Steps, whole epochs, and whether it holds what ``best`` cannot: the choice of this epoch's best."""
    content = read_checkpoint(path)
    epochs = content["loops"]["fit_loop"]["epoch_progress"]["current"]["processed"]
    return content["global_step"], epochs, path.stem != "best"


def check_checkpoint(path: Path, model: Mapping[str, Any]) -> None:
    """Refuse a checkpoint of another model before the images are read.

    Raises:
        InputError: it cannot be read, or holds another architecture; the message names what differs.
    """
    theirs = read_checkpoint(path)["hyper_parameters"]["model"]
    ours = _leaves(model)
    for key, value in _leaves(theirs).items():
        if key not in ours or ours[key] != value:
            raise InputError(
                f"{path}: trained with model.{key}={value}, but this run has {ours.get(key, 'none')}: "
                f"set model.{key}, or start without ckpt_path"
            )


def _leaves(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    leaves: dict[str, Any] = {}
    for key, value in config.items():
        leaves.update(_leaves(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {prefix + key: value})
    return leaves


def _moved(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {key: _moved(inner, old, new) for key, inner in value.items()}
    if isinstance(value, list):
        return [_moved(inner, old, new) for inner in value]
    if isinstance(value, str) and (value == old or value.startswith(old + "/")):
        return new + value[len(old) :]
    return value
