"""The sweeper of ``regnet train -m``: grids, and searches by Optuna; a sweep that was cut off goes on."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf

from regnet.cli.sweep.words import read_words
from regnet.errors import InputError
from regnet.sweeps import (
    Space,
    Trial,
    best,
    costs,
    finite,
    grid,
    read_metrics,
    read_sweep,
    read_trials,
    refuse_loss,
    to_plain,
    write_results,
    write_sweep,
    write_trial,
)

_OPTIONS = ("sampler", "objectives", "trials", "jobs", "prune_after", "seed", "params")


class Sweep(Sweeper):
    """Try values of the configuration, each trial in the folder of its number.

    Args:
        options: see ``configs/hydra/sweeper/regnet.yaml``.
    """

    def __init__(self, **options: Any) -> None:
        self.options = options

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Take what Hydra gives.

        Raises:
            InputError: an option is unknown.
        """
        for key in self.options:
            if key not in _OPTIONS:
                hint = "the place is hydra.sweeper.params" if key == "search_space" else f"known: {', '.join(_OPTIONS)}"
                raise InputError(f"config: unknown key 'hydra.sweeper.{key}': {hint}")
        self.hydra_context: HydraContext = hydra_context
        self.config: DictConfig = config
        self.launcher: Launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> None:
        """Run what is not yet done of the sweep.

        Raises:
            InputError: the words are no sweep, its folder holds another one, or trials failed (of a search: all).
        """
        params = [f"{key}={value}" for key, value in (self.options["params"] or {}).items()]
        space, self.fixed = read_words([*params, *arguments], self.hydra_context.config_loader)
        self.objectives = list(self.options["objectives"])
        refuse_loss(space, self.objectives)
        self.folder = Path(self.config.hydra.sweep.dir).resolve()
        search = self.options["sampler"] != "grid"
        self.prunes = search and len(self.objectives) == 1 and self.options["prune_after"] is not None
        self._begin(space)
        for batch in self._search(space) if search else self._grid(space):
            self._run(batch)
        self._tell(search)

    def _begin(self, space: Space) -> None:
        about = {
            "space": to_plain(space),
            "fixed": self.fixed,
            "objectives": self.objectives,
            "sampler": self.options["sampler"],
        }
        before = read_sweep(self.folder)
        for key, value in about.items():
            if before and before[key] != value:
                raise InputError(f"{self.folder}: holds another sweep, with another {key}; set another hydra.sweep.dir")
        self.folder.mkdir(parents=True, exist_ok=True)
        write_sweep(self.folder, about)
        OmegaConf.save(self.config, self.folder / "multirun.yaml")

    def _grid(self, space: Space) -> Iterator[list[Trial]]:
        known = read_trials(self.folder)
        trials = [Trial(number, values) for number, values in enumerate(grid(space))]
        left = [trial for trial in trials if trial.number not in known or known[trial.number].state == "running"]
        step = self.options["jobs"] or max(len(left), 1)
        yield from (left[start : start + step] for start in range(0, len(left), step))

    def _search(self, space: Space) -> Iterator[list[Trial]]:
        from regnet.sweeps import study as optuna  # the extra `sweep`

        step, wanted = self.options["jobs"] or 1, self.options["trials"]
        study = optuna.open_study(self.folder, self.options["sampler"], self.options["seed"], len(self.objectives))
        for trial in read_trials(self.folder).values():
            if trial.state != "running":
                optuna.tell(study, trial)  # once more changes nothing
        left = optuna.unfinished(study)
        asked = len(study.trials)
        while left or asked < wanted:
            new = max(min(step - len(left), wanted - asked), 0)
            batch = left[:step] + [optuna.ask(study, space) for _ in range(new)]
            left, asked = left[step:], asked + new
            yield batch
            for trial in batch:
                optuna.tell(study, trial)

    def _run(self, batch: list[Trial]) -> None:
        for trial in batch:
            write_trial(self.folder, trial)
        words = [[*self.fixed, *trial.words(), *self._own_words(trial)] for trial in batch]
        self.validate_batch_is_legal(words)
        try:
            returned: Sequence[JobReturn | Exception] = self.launcher.launch(words, batch[0].number)
        except Exception as error:  # a worker died: what had finished by then is in its folder
            returned = [error] * len(batch)
        wrong = [self._judge(trial, job) for trial, job in zip(batch, returned, strict=True)]
        write_results(self.folder, read_trials(self.folder).values())
        for mistake in wrong:
            if mistake:
                raise mistake

    def _own_words(self, trial: Trial) -> list[str]:
        words = [f"hydra.sweep.subdir={trial.number}"]
        if self.prunes:
            key = "+callbacks.pruning"
            words += [
                f"{key}._target_=regnet.training.callbacks.Pruning",
                f"{key}.folder='{self.folder}'",
                f"{key}.number={trial.number}",
                f"{key}.objective={self.objectives[0]}",
                f"{key}.prune_after={self.options['prune_after']}",
            ]
        return words

    def _judge(self, trial: Trial, job: JobReturn | Exception) -> InputError | None:
        """Keep what became of a trial; return a mistake that every other trial would repeat."""
        error = job if isinstance(job, Exception) else getattr(job, "_return_value", None)
        metrics = read_metrics(self.folder / str(trial.number))
        wrong = None
        try:
            if metrics is None:
                raise error if isinstance(error, Exception) else InputError("the run left no metrics")
            trial.metrics = dict(metrics)
            trial.costs = costs(metrics, self.objectives)
            if not finite(trial.costs):
                raise InputError(", ".join(f"{name} is {value}" for name, value in trial.costs.items()))
            trial.state = "pruned" if "pruned" in metrics else "done"
        except Exception as reason:
            trial.state, trial.error = "failed", " ".join(str(reason).split()) or type(reason).__name__
            if trial.error.startswith("objective:"):
                wrong = InputError(trial.error)
        write_trial(self.folder, trial)
        return wrong

    def _tell(self, search: bool) -> None:
        trials = read_trials(self.folder).values()
        failed = [trial for trial in trials if trial.state == "failed"]
        first = best(trials)
        if first is not None:
            name, cost = next(iter(first.costs.items()))
            print(f"best of {len(trials)}: {name} {cost:.4f} in {self.folder / str(first.number)}")
        if failed and (first is None or not search):
            text = f"{failed[0].error} (trial {failed[0].number})"
            raise InputError(f"{len(failed)} of {len(trials)} trials failed: {text}")
