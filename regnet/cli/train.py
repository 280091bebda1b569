"""``regnet train``: compose the configuration with Hydra and run it."""

import argparse
import logging
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any, cast

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from hydra.utils import get_object, get_original_cwd, instantiate
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from regnet.cli.sweep import find_plugins
from regnet.cli.words import quoted
from regnet.config import config_dir
from regnet.errors import InputError
from regnet.training.configuration import check_keys, checkpoints, flat_keys, nearest, read_run
from regnet.training.experiment import run_experiment
from regnet.training.processes import check_common_folder, further_processes, is_first, joined_run

_VALUED_FLAGS = (
    "--cfg",
    "-c",
    "--config-dir",
    "-cd",
    "--config-path",
    "-cp",
    "--config-name",
    "-cn",
    "--package",
    "-p",
    "--resume",
)


def add_parser(subparsers: Any) -> None:
    """Name the verb; its words belong to Hydra."""
    subparsers.add_parser("train", help="train a registration network", add_help=False)


def run(arguments: argparse.Namespace) -> int:
    """Train as ``arguments.overrides``, the words after ``train``, say; ``--resume RUN_DIR`` goes on with a run.

    Raises:
        InputError: a key, file or image is wrong; the message names it.
    """
    words = quoted(_flags_first(arguments.overrides))
    # A user's own classes are found from where the user stands, and beside the user's configuration.
    sys.path.extend([os.getcwd(), *_config_dirs(words)])
    find_plugins()
    member = joined_run()
    if member is not None:
        train(cast(DictConfig, OmegaConf.load(member / "config.yaml")))
        return 0
    check_common_folder(words)
    if words[:1] == ["--resume"]:
        if len(words) < 2:
            raise InputError("--resume needs the folder of a run")
        train(read_run(Path(words[1]), words[2:]))
        return 0
    started_with = [os.path.abspath(sys.argv[0]), *sys.argv[1:]]

    def job(config: DictConfig) -> float:
        sys.argv = started_with  # Hydra has read its words; Lightning repeats these for further processes
        os.chdir(get_original_cwd())  # whatever hydra.job.chdir says: paths are relative to where the user stands
        return _job(config)

    sys.argv = ["regnet train", *words]
    # Hydra's own report would be a traceback, or two lines and status 1: let the exception through, for one line.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        hydra.main(version_base="1.3", config_path=str(config_dir()), config_name="train")(job)()
    except HydraException as error:
        raise InputError(_explain(error, words)) from error
    except SystemExit as stop:
        if isinstance(stop.__cause__, Exception):
            raise stop.__cause__ from None
        raise
    return 0


def train(config: DictConfig) -> float:
    """Run one composed configuration and return the objective of its best checkpoint.

    Raises:
        InputError: a key, file or image is wrong; the message names it.
    """
    try:
        logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)  # no list of absent hardware
        plain = cast(dict[str, Any], OmegaConf.to_container(config, resolve=True, throw_on_missing=True))
        check_keys(plain, get_object)
        with further_processes(Path(plain["paths"]["run_dir"])), _no_hydra():
            objective = run_experiment(plain, lambda block, **more: instantiate(block, _convert_="all", **more))
    except MissingMandatoryValue as error:
        raise InputError(f"config: {error.full_key} is not set: {error.full_key}=VALUE") from error
    except (OmegaConfBaseException, HydraException) as error:
        raise InputError(f"config: {error.__cause__ or error}") from error
    if is_first():
        print(f"{plain['objective']} {objective:.4f} in {plain['paths']['run_dir']}")
    return objective


def _job(config: DictConfig) -> float:
    try:
        if config.test and HydraConfig.get().mode is RunMode.MULTIRUN:
            raise InputError("test=true: never under -m; the test split is for the one run that a grid has chosen")
        return train(_continued(config))
    except (ValueError, OSError) as error:
        if HydraConfig.get().mode is RunMode.MULTIRUN:
            raise  # one job of several, perhaps on another machine: its sweeper tells
        raise SystemExit(2) from error  # past Hydra, which would announce it in lines of its own


@contextmanager
def _no_hydra() -> Iterator[None]:
    """Lightning, that sees Hydra at work, would give its further processes words for Hydra."""
    state = HydraConfig.instance()
    before, state.cfg = state.cfg, None
    try:
        yield
    finally:
        state.cfg = before


def _continued(config: DictConfig) -> DictConfig:
    """What a job goes on with that SLURM, or a sweep, has started again: the same command means the same run then."""
    folder = Path(config.paths.run_dir)
    again = int(os.environ.get("SLURM_RESTART_COUNT", 0)) or HydraConfig.get().mode is RunMode.MULTIRUN
    if again and checkpoints(folder):
        return read_run(folder)
    return config


def _flags_first(words: Sequence[str]) -> list[str]:
    """Hydra takes its own flags before the overrides only; people put them anywhere."""
    flags: list[str] = []
    overrides: list[str] = []
    rest = iter(words)
    for word in rest:
        (flags if word.startswith("-") else overrides).append(word)
        if word in _VALUED_FLAGS:
            flags.extend(value for value in [next(rest, None)] if value is not None)
    return flags + overrides


def _config_dirs(words: Sequence[str]) -> list[str]:
    """What follows --config-dir or -cd."""
    found = re.findall(r"(?:^|\0)(?:--config-dir|-cd)[=\0]([^\0]+)", "\0".join(words))
    return [str(Path(folder).resolve()) for folder in found]


def _explain(error: HydraException, words: Sequence[str]) -> str:
    """Hydra's complaint about the words in one line, with the nearest known key."""
    text = str(error)
    overridden = re.search(r"Could not override '([^'@]+)", text)
    ambiguous = re.search(r"Ambiguous value for argument '([^=]+)=(.*)'\n", text)
    missing = re.search(r"Could not find '([^']+)'.*Available options in '([^']*)':(.*)", text, re.DOTALL)
    if ambiguous:
        key, value = ambiguous.groups()
        return f"config: {key}: the comma makes a grid, under -m; one value is \"{key}='{value}'\", a list [{value}]"
    if missing:
        options = [f"{missing[2]}/{option}" for option in missing[3].split()]
        return f"config: there is no {missing[1]!r}{nearest(missing[1], options)}"
    if overridden:
        # of a whole block, which of its keys is in question
        inner = re.search(r"full_key: (\S+)", str(error.__cause__))
        key = inner[1] if inner and inner[1].startswith(overridden[1]) else overridden[1]
        known = _compose(words)
        if _is_argument(known, key):
            return f"config: {key} is not set yet: put + in front to add it: +{key}=VALUE"
        return f"config: unknown key {key!r}{nearest(key, flat_keys(known))}"
    return f"config: {text}"


def _is_argument(config: Any, key: str) -> bool:
    """Whether the class around a key takes it, though the configuration does not have it."""
    *outer, name = key.split(".")
    for part in outer:
        config = config.get(part) if isinstance(config, dict) else None
    target = config.get("_target_") if isinstance(config, dict) else None
    return target is not None and name in signature(get_object(target)).parameters


def _compose(words: Sequence[str]) -> dict[str, Any]:
    """The configuration that the groups among the words choose, or else the default one."""
    groups = [word for word in words if re.fullmatch(r"[a-z_]+=[A-Za-z0-9_]+", word)]
    GlobalHydra.instance().clear()
    with hydra.initialize_config_dir(str(config_dir()), version_base="1.3"):
        try:
            config = hydra.compose("train", groups)
        except HydraException:
            config = hydra.compose("train")
    return cast(dict[str, Any], OmegaConf.to_container(config))
