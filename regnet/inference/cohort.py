"""Many pairs measured: several at a time, and none twice."""

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import torch

from regnet import __version__
from regnet.errors import reason
from regnet.inference.case import Case, Protocol
from regnet.inference.engine import Outcome, run_each
from regnet.inference.evaluate import evaluate
from regnet.report.measures import Measures, from_json, to_json, write_json


def evaluate_cases(
    cases: Sequence[Case],
    protocol: Protocol,
    keep: Path | None = None,
    jobs: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> tuple[dict[str, Measures], dict[str, str]]:
    """Measure many pairs, whatever becomes of one.

    Args:
        cases: of different ids.
        protocol: as for one.
        keep: folder that gets ``ID.json`` as soon as a case is done. One that is there already is taken as it is if it
            was measured by this version of regnet, from the same files (names, sizes and times of change) and by the
            same protocol: so a run that was interrupted goes on, and a new pair costs no more than itself.
        jobs: how many are worked on at a time, each in a process of its own with its share of torch's threads; 1: in
            this process.
        progress: called after each case.

    Returns:
        The measures by id, in the order of the cases; and for those that cannot be measured the reason, by id.
    """
    found: dict[str, Measures] = {}
    failed: dict[str, str] = {}
    left = []
    for case in cases:
        measures = None if keep is None else _kept(keep, case, protocol)
        if measures is None:
            left.append(case)
        else:
            found[case.pair.id] = measures
            progress()
    if jobs == 1 or len(left) < 2:
        outcomes = _here(left, protocol, keep)
    else:
        threads = max(1, torch.get_num_threads() // jobs)
        outcomes = run_each(partial(_elsewhere, protocol=protocol, keep=keep, threads=threads), left, jobs)
    for index, outcome in outcomes:
        name = left[index].pair.id
        if isinstance(outcome, BaseException):
            failed[name] = reason(outcome)
        else:
            found[name], messages = outcome
            for message in messages:
                warnings.warn(message, stacklevel=2)
        progress()
    names = [case.pair.id for case in cases]
    return {name: found[name] for name in names if name in found}, {n: failed[n] for n in names if n in failed}


def _here(cases: Sequence[Case], protocol: Protocol, keep: Path | None) -> Iterator[Outcome]:
    for index, case in enumerate(cases):
        try:
            yield index, (_evaluate(case, protocol, keep), [])
        except Exception as error:
            yield index, error


def _elsewhere(case: Case, protocol: Protocol, keep: Path | None, threads: int) -> tuple[Measures, list[str]]:
    """A case in another process, and the warnings that are to be shown by its parent."""
    torch.set_num_threads(threads)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        measures = _evaluate(case, protocol, keep)
    return measures, [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]


def _evaluate(case: Case, protocol: Protocol, keep: Path | None) -> Measures:
    before = _state(case, protocol)
    measures = evaluate(case, protocol)
    if keep is not None:
        write_json(keep / f"{case.pair.id}.json", {"state": before, "measures": to_json(measures)})
    return measures


def _kept(keep: Path, case: Case, protocol: Protocol) -> Measures | None:
    """What was measured before, if nothing has changed since."""
    try:
        content = json.loads((keep / f"{case.pair.id}.json").read_text(encoding="utf-8"))
        return from_json(content["measures"]) if content["state"] == _state(case, protocol) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # none, or not ours: measured anew
        return None


def _state(case: Case, protocol: Protocol) -> str:
    """A digest of all that a case's figures depend on."""
    files = [(os.fspath(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in case.files()]
    return hashlib.sha256(json.dumps([__version__, asdict(protocol), files]).encode()).hexdigest()
