"""One training run from a configuration: make its parts, fit, judge the best weights."""

import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch._dynamo
from lightning.pytorch.callbacks import ModelCheckpoint, ProgressBar, Timer
from lightning.pytorch.utilities.exceptions import MisconfigurationException

from regnet.errors import InputError
from regnet.models import build, describe
from regnet.models.registry import packages
from regnet.sweeps import write_metrics
from regnet.training.callbacks.interruption import Interrupted
from regnet.training.callbacks.pruning import Pruning
from regnet.training.configuration import check_checkpoint, checkpoints, write_config
from regnet.training.environment import write_environment
from regnet.training.module import RegistrationModule
from regnet.training.weights import freeze, warm_start

Make = Callable[..., Any]
_CTRL_C = 130  # what a shell has for it


def run_experiment(config: Mapping[str, Any], make: Make) -> float:
    """Train as a configuration says.

    Args:
        config: resolved, plain containers; see ``configs/train.yaml``.
        make: turns a block with a ``_target_`` (and further arguments by name) into its object.

    Returns:
        The objective of the best checkpoint (of the last weights where none was kept).

    Raises:
        InputError: the run's folder holds another run, a checkpoint does not fit, a class refuses its arguments, no
            objective was logged, training stopped on a loss that is not finite, or an image is at fault.
    """
    with _blame("seed"):
        if not isinstance(config["seed"], int):  # Lightning would take none for any, and no run could be repeated
            raise ValueError(f"must be a whole number, got {config['seed']!r}")
        pl.seed_everything(config["seed"], workers=True, verbose=False)
    with _blame("model"):
        trusted = packages(config["model"])  # whoever writes a configuration trusts what it names
        model = describe(config["model"], trusted)
        network = build(config["model"], trusted)
    folder = Path(config["paths"]["run_dir"])
    checkpoint = config["ckpt_path"]
    if checkpoint:
        check_checkpoint(Path(checkpoint), model)
    elif checkpoints(folder):
        raise InputError(f"{folder}: holds a run; go on with `{_resume(folder)}`, or set another hydra.run.dir")
    elif config.get("init_from"):  # a configuration of an older version has not all keys
        warm_start(network, config["init_from"])
    freeze(network, config.get("freeze") or ())
    if config.get("compile"):
        with _blame("compile"):
            network.compile(backend=_backend(config["compile"]))

    data = make(config["data"])
    spec = getattr(data, "spec", None)
    module = RegistrationModule(
        model=network,
        loss=make(config["loss"]),
        optimizer=make(config["optimizer"]),
        scheduler=make(config["scheduler"]) if config["scheduler"] else None,
        model_config=model,
        spec=None if spec is None else spec.to_dict(),
        objective=config["objective"],
        seed=config["seed"],
    )
    callbacks = [make(block) for block in config["callbacks"].values() if block]
    loggers = [make(block) for block in config["logger"].values() if block]
    with _blame("optimizer or scheduler"):
        module.configure_optimizers()  # once to try, before anything is read
    bar = any(isinstance(callback, ProgressBar) for callback in callbacks)  # none configured: none, not Lightning's own
    with _blame("trainer"):
        trainer = make(config["trainer"], callbacks=callbacks, logger=loggers, enable_progress_bar=bar)
    if trainer.is_global_zero:
        write_config(config, folder)
        write_environment(folder)
    for logger in loggers:
        logger.log_hyperparams(config)
    failed = True
    try:
        logged = _fit(trainer, module, data, config["objective"], checkpoint, config["test"])
        if trainer.is_global_zero:
            write_metrics(folder, logged)
        failed = False
        return logged[config["objective"]]
    except InputError as error:
        # From a worker of the data loader it comes with that worker's traceback; its own line is the last.
        raise InputError(str(error).strip().splitlines()[-1].removeprefix("regnet.errors.InputError: ")) from error
    except MisconfigurationException as error:
        raise InputError(f"config: {error}") from error
    except SystemExit as stop:
        twice = isinstance(stop.__context__, KeyboardInterrupt)
        if not isinstance(stop, Interrupted) and not twice:
            raise
        if trainer.is_global_zero:
            remedy = f"go on with: {_resume(folder)}" if checkpoints(folder) else "no checkpoint was written yet"
            print(f"regnet: interrupted; {remedy}", file=sys.stderr)
        raise Interrupted(_CTRL_C if twice else stop.code) from None
    finally:
        for logger in loggers:
            _finish(logger, failed)


def _resume(folder: Path) -> str:
    return f"regnet train --resume {shlex.quote(str(folder))}"


def _backend(name: str) -> str:
    known = torch._dynamo.list_backends(None)
    if name not in known:
        raise ValueError(f"no backend of torch.compile is called {name!r}: one of {', '.join(known)}")
    return name


@contextmanager
def _blame(group: str) -> Iterator[None]:
    """Say which part of the configuration a value was in that its class did not take."""
    try:
        yield
    except InputError:
        raise
    except (TypeError, ValueError, AssertionError, AttributeError) as error:
        raise InputError(f"config: {group}: {' '.join(str(error).split())}") from error


def _fit(
    trainer: pl.Trainer,
    module: RegistrationModule,
    data: pl.LightningDataModule,
    objective: str,
    checkpoint: str | None,
    test: bool,
) -> dict[str, float]:
    warnings.filterwarnings("ignore", ".*does not have many workers.*")  # the data's configuration says how many
    warnings.filterwarnings("ignore", ".*Checkpoint directory .* not empty.*")  # a run that goes on
    warnings.filterwarnings("ignore", ".*LeafSpec.*", FutureWarning)  # Lightning 2.6 with torch 2.13
    trainer.fit(module, datamodule=data, ckpt_path=checkpoint)
    callbacks: list[Any] = trainer.callbacks  # type: ignore[attr-defined]
    # Over all the parts of a run that was cut off; now, since the validation below takes the best checkpoint's timer.
    spent = [callback.time_elapsed("train") for callback in callbacks if isinstance(callback, Timer)]
    best = _best_checkpoint(trainer)
    loggers, trainer.loggers = trainer.loggers, []  # the logs hold this validation already, at its own epoch
    logged = trainer.validate(module, datamodule=data, ckpt_path=best, verbose=False)[0]
    trainer.loggers = loggers
    if test:
        trainer.test(module, datamodule=data, ckpt_path=best)
    if objective not in logged:
        raise InputError(f"objective: no {objective!r} was logged, only {', '.join(sorted(logged))}")
    values = {name: float(value) for name, value in logged.items()}
    if spent:
        values["seconds"] = spent[0]
    if any(isinstance(callback, Pruning) and callback.pruned for callback in callbacks):
        values["pruned"] = 1.0
    return values


def _finish(logger: Any, failed: bool) -> None:
    """End a Weights & Biases run with its job, or the next job of a grid would write into it."""
    run: Any = getattr(logger, "_experiment", None)  # not `experiment`, which would begin one
    if run is not None and hasattr(run, "finish"):
        run.finish(exit_code=int(failed))


def _best_checkpoint(trainer: pl.Trainer) -> str | None:
    kept = [callback for callback in trainer.checkpoint_callbacks if isinstance(callback, ModelCheckpoint)]
    # The callback that watches a value comes before one that only keeps the last.
    for callback in sorted(kept, key=lambda callback: callback.monitor is None):
        if callback.best_model_path and Path(callback.best_model_path).is_file():
            return callback.best_model_path
    return None
