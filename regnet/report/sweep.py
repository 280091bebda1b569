"""The page of a sweep: which trial is best, what it cost, and what mattered. One file, nothing from the net."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from regnet.errors import InputError
from regnet.io import atomic_path
from regnet.report import sweep_figures as figures
from regnet.sweeps import Space, Trial, best, from_plain, pareto, read_sweep, read_trials

_SECOND = "val/sdlogj"  # against which a sweep of one cost is shown: what roughness the overlap was bought with
_SHOWN = ("val/dice", "val/tre", "val/similarity", "val/folding", "val/sdlogj", "seconds")
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1a202c; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-top: 2rem } svg { max-width: 100%; height: auto }
.wide { overflow-x: auto } table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #e2e8f0; white-space: nowrap }
th { border-bottom: 2px solid #4a5568; vertical-align: bottom } tr.best { background: #fefcbf; font-weight: 600 }
tr.failed, tr.pruned, tr.running { color: #718096 } td.text { text-align: left; white-space: normal }
pre { background: #f7fafc; padding: .7rem; overflow-x: auto }
"""


def write_sweep_page(folder: Path, path: Path, command: str) -> Trial:
    """Write the page of the sweep in ``folder``.

    Args:
        folder: of the sweep.
        path: the page to write, replacing what is there.
        command: how to train the best trial again, to be shown.

    Returns:
        The best trial.

    Raises:
        InputError: the folder holds no sweep, or none of its trials has finished.
    """
    about, trials = read_sweep(folder), list(read_trials(folder).values())
    if not about:
        raise InputError(f"{folder}: not the folder of a sweep (regnet train -m ... hydra.sweep.dir={folder})")
    first = best(trials)
    if first is None:
        raise InputError(f"{folder}: none of its {len(trials)} trials has finished")
    text = _page(folder.resolve().name, about, trials, first, command)
    with atomic_path(path, overwrite=True) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return first


def _page(name: str, about: dict[str, Any], trials: list[Trial], first: Trial, command: str) -> str:
    space = from_plain(about["space"])
    done = [trial for trial in trials if trial.state == "done"]
    states = {state: sum(trial.state == state for trial in trials) for state in ("done", "pruned", "failed", "running")}
    counts = ", ".join(f"{count} {state}" for state, count in states.items() if count)
    cost, value = next(iter(first.costs.items()))
    points, names = _points(done)
    chosen = pareto(points)
    parts = [
        f"<p>{len(trials)} trials ({counts}) by {escape(about['sampler'])}. Smaller is better for every cost.</p>",
        f"<p>Best: trial {first.number}, {escape(cost)} = {value:.4f}.</p><pre>{escape(command)}</pre>",
        f"<h2>Trials</h2><div class=wide>{_table(trials, space, first, chosen)}</div>",
        f"<h2>Course</h2>{figures.history(done)}",
    ]
    if len(names) > 1:
        parts.append(
            f"<h2>Pareto front</h2><p>Trials that none beats in one of {escape(', '.join(names))} without being worse "
            f"in another: {', '.join(map(str, chosen))}.</p>{figures.front(points, names, chosen)}"
        )
    parts.append(f"<h2>What mattered</h2>{_importance(done, space)}")
    if space:
        parts.append(f"<div class=wide>{figures.slices(done, space)}</div>")
    parts.append(f"<h2>The same in every trial</h2><pre>{escape(chr(10).join(about['fixed']) or 'nothing set')}</pre>")
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Sweep {escape(name)}</title>"
        f"<meta name=viewport content='width=device-width'><style>{_STYLE}</style>"
        f"<h1>Sweep {escape(name)}</h1>{''.join(parts)}</html>\n"
    )


def _points(done: Sequence[Trial]) -> tuple[dict[int, list[float]], list[str]]:
    """The costs of each trial, by number, and their names."""
    names = list(done[0].costs)
    more = [_SECOND] if len(names) == 1 and all(_SECOND in trial.metrics for trial in done) else []
    points = {
        trial.number: [*trial.costs.values(), *(trial.metrics[name] for name in more if name not in names)]
        for trial in done
    }
    return points, names + more


def _table(trials: Sequence[Trial], space: Space, first: Trial, chosen: Sequence[int]) -> str:
    shown = [name for name in _SHOWN if any(name in trial.metrics for trial in trials)]
    shown += sorted({name for trial in trials for name in trial.costs if name in trial.metrics} - set(shown))
    head = ["trial", "state", "front", *space, *shown, "why"]
    rows = ["".join(f"<th>{escape(name)}" for name in head)]
    far = float("inf")
    for trial in sorted(trials, key=lambda trial: (trial.state != "done", next(iter(trial.costs.values()), far))):
        cells = [str(trial.number), trial.state, "●" if trial.number in chosen else ""]
        cells += [_short(trial.values.get(key, "")) for key in space]
        cells += [f"{trial.metrics[name]:.4g}" if name in trial.metrics else "" for name in shown]
        kind = "best" if trial is first or trial.number == first.number else trial.state
        columns = "".join(f"<td>{escape(cell)}" for cell in cells)
        rows.append(f"<tr class={kind}>{columns}<td class=text>{escape(trial.error)}")
    return f"<table><thead><tr>{rows[0]}</thead><tbody>{''.join(rows[1:])}</tbody></table>"


def _importance(done: Sequence[Trial], space: Space) -> str:
    try:
        from regnet.sweeps.study import importances
    except InputError as error:
        return f"<p>{escape(str(error))}</p>"
    shares = importances(done, space)
    if not shares:
        return "<p>Too few trials, or none differs: nothing can be said.</p>"
    text = f"Share of the spread of the first cost that each key explains (PED-ANOVA of {len(done)} trials)"
    few = "; with so few trials a hint, no more" if len(done) < 30 else ""
    return f"<p>{text}{few}.</p>{figures.importance(shares)}"


def _short(value: str) -> str:
    try:
        return f"{float(value):.4g}"
    except ValueError:
        return value
