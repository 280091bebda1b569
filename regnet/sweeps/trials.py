"""The trials of a sweep on disk: a folder each, numbered, with ``trial.json``, whatever was used to choose them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from regnet.errors import InputError
from regnet.io.atomic import atomic_path

METRICS = "metrics.json"  # what a run leaves in its folder when it has ended
_TRIAL = "trial.json"
_SWEEP = "sweep.json"


@dataclass
class Trial:
    """One trial.

    Args:
        number: of its folder, and of the trial in Optuna's study.
        values: what was chosen, by key, as typed.
        state: ``running`` (or cut off), ``done``, ``pruned`` or ``failed``.
        metrics: what it came to.
        costs: what it is compared by, smaller is better.
        error: why it failed.
    """

    number: int
    values: dict[str, str]
    state: str = "running"
    metrics: dict[str, float] = field(default_factory=dict)
    costs: dict[str, float] = field(default_factory=dict)
    error: str = ""

    def words(self) -> list[str]:
        """Its overrides."""
        return [f"{key}={value}" for key, value in self.values.items()]


def write_trial(folder: Path, trial: Trial) -> None:
    """Keep what is known of a trial in its folder of the sweep's ``folder``."""
    _write(folder / str(trial.number) / _TRIAL, asdict(trial))


def read_trials(folder: Path) -> dict[int, Trial]:
    """The trials of a sweep by number.

    Raises:
        InputError: a file of a trial cannot be read.
    """
    found = {}
    for path in folder.glob(f"*/{_TRIAL}"):
        try:
            trial = Trial(**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise InputError(f"{path}: not the record of a trial; remove its folder to repeat it") from error
        found[trial.number] = trial
    return dict(sorted(found.items()))


def write_metrics(folder: Path, metrics: Mapping[str, float]) -> None:
    """Keep what a run came to in its folder."""
    _write(folder / METRICS, dict(metrics))


def read_metrics(folder: Path) -> Mapping[str, float] | None:
    """What the run in ``folder`` came to, or None where it has not ended."""
    path = folder / METRICS
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def best(trials: Iterable[Trial]) -> Trial | None:
    """The finished trial whose first cost is least."""
    done = [trial for trial in trials if trial.state == "done"]
    return min(done, key=lambda trial: next(iter(trial.costs.values())), default=None)


def pareto(points: Mapping[int, Sequence[float]]) -> list[int]:
    """The numbers of the points that no other beats in one cost without being worse in another."""

    def beaten(point: tuple[float, ...]) -> bool:
        others = map(tuple, points.values())
        return any(other != point and all(a <= b for a, b in zip(other, point, strict=True)) for other in others)

    return [number for number, point in points.items() if not beaten(tuple(point))]


def read_sweep(folder: Path) -> dict[str, Any]:
    """What a sweep is of (``space``, ``fixed``, ...), or nothing where none was begun."""
    path = folder / _SWEEP
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def write_sweep(folder: Path, about: Mapping[str, Any]) -> None:
    """Keep it."""
    _write(folder / _SWEEP, dict(about))


def write_results(folder: Path, trials: Iterable[Trial]) -> None:
    """Keep which trial is best, and what became of each, as ``results.json``."""
    trials = list(trials)
    first = best(trials)
    states = {str(trial.number): trial.error or trial.state for trial in trials}
    content = {"best": None if first is None else first.number, "trials": states}
    _write(folder / "results.json", content | ({"values": first.values, "costs": first.costs} if first else {}))


def _write(path: Path, content: Any) -> None:
    with atomic_path(path, overwrite=True) as temporary:
        temporary.write_text(json.dumps(content, indent=1), encoding="utf-8")
