"""Optuna, which chooses what to try next; its study lies in an SQLite file beside the trials."""

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regnet.errors import InputError
from regnet.sweeps.space import Choice, Interval, Space
from regnet.sweeps.trials import Trial

try:
    import optuna
except ImportError as error:
    raise InputError("a search needs Optuna: pip install 'regnet[sweep]'") from error

optuna.logging.set_verbosity(optuna.logging.WARNING)

SAMPLERS = ("tpe", "nsga2")
FILE = "study.db"
_NAME = "regnet"
_VALUES = "typed"


def open_study(folder: Path, sampler: str, seed: int, objectives: int) -> optuna.Study:
    """The study of a sweep, begun or gone on with.

    Args:
        folder: of the sweep.
        sampler: ``tpe`` (Bergstra et al., NeurIPS 2011) or ``nsga2`` (Deb et al., 2002).
        seed: of its draws; a study that goes on draws anew.
        objectives: how many costs, all minimised.
    """
    storage = _storage(folder)
    study = optuna.create_study(
        storage=storage,
        study_name=_NAME,
        directions=["minimize"] * objectives,
        load_if_exists=True,
    )
    if len(study.directions) != objectives:
        raise InputError(f"{folder / FILE}: a study of {len(study.directions)} objectives, not {objectives}")
    draws = seed + len(study.trials)  # or a sampler that starts again would repeat itself
    if sampler == "nsga2":
        study.sampler = optuna.samplers.NSGAIISampler(seed=draws, population_size=16)
    elif sampler == "tpe":
        study.sampler = optuna.samplers.TPESampler(seed=draws, n_startup_trials=4)
    else:
        raise InputError(f"hydra.sweeper.sampler={sampler}: expected grid, {' or '.join(SAMPLERS)}")
    return study


def ask(study: optuna.Study, space: Space) -> Trial:
    """Another trial."""
    trial = study.ask({key: _distribution(choice) for key, choice in space.items()})
    values = {key: str(value) for key, value in trial.params.items()}
    trial.set_user_attr(_VALUES, json.dumps(values))
    return Trial(trial.number, values)


def tell(study: optuna.Study, trial: Trial) -> None:
    """How it came out."""
    state = {
        "done": optuna.trial.TrialState.COMPLETE,
        "pruned": optuna.trial.TrialState.PRUNED,
        "failed": optuna.trial.TrialState.FAIL,
    }[trial.state]
    values = list(trial.costs.values()) if trial.state == "done" else None
    study.tell(trial.number, values, state=state, skip_if_finished=True)


def unfinished(study: optuna.Study) -> list[Trial]:
    """Trials that were asked for and never told of: those of a sweep that was cut off."""
    running = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING])
    return [Trial(trial.number, json.loads(trial.user_attrs[_VALUES])) for trial in running]


def is_hopeless(folder: Path, number: int, epoch: int, cost: float, prune_after: int) -> bool:
    """Tell how a running trial does, and ask whether it is worse than the median of the others at this epoch."""
    study = optuna.load_study(
        study_name=_NAME,
        storage=_storage(folder),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=prune_after),
    )
    (found,) = [trial for trial in study.get_trials(deepcopy=False) if trial.number == number]
    trial = optuna.trial.Trial(study, found._trial_id)
    if epoch not in found.intermediate_values:  # a run that goes on may pass through an epoch again
        trial.report(cost, epoch)
    return trial.should_prune()


def importances(trials: Sequence[Trial], space: Space, objective: int = 0) -> dict[str, float]:
    """How much of the spread of a cost each key explains, by PED-ANOVA (Watanabe et al., IJCAI 2023): 0 to 1.

    Too few trials (below four), or trials that are all alike, explain nothing: empty.
    """
    study = optuna.create_study()
    distributions = {key: _distribution(choice) for key, choice in space.items()}
    for trial in trials:
        value = list(trial.costs.values())[objective]
        params = {key: _typed(space[key], trial.values[key]) for key in space}
        study.add_trial(optuna.trial.create_trial(params=params, distributions=distributions, value=value))
    spread = {trial.value for trial in study.trials}
    if len(trials) < 4 or len(spread) < 2 or not space:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    return dict(optuna.importance.get_param_importances(study, evaluator=evaluator))


def _storage(folder: Path) -> Any:
    return optuna.storages.RDBStorage(f"sqlite:///{(folder / FILE).resolve()}", {"connect_args": {"timeout": 60}})


def _distribution(choice: Choice | Interval) -> Any:
    if isinstance(choice, Choice):
        return optuna.distributions.CategoricalDistribution(choice.values)
    if choice.integer:
        return optuna.distributions.IntDistribution(int(choice.low), int(choice.high), log=choice.log)
    return optuna.distributions.FloatDistribution(choice.low, choice.high, log=choice.log)


def _typed(choice: Choice | Interval, value: str) -> Any:
    if isinstance(choice, Choice):
        return value
    return int(value) if choice.integer else float(value)
