"""Many pairs measured: several at a time, and none twice."""

import hashlib
import json
import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

import torch

from regnet import __version__
from regnet.inference.case import Case, Protocol
from regnet.inference.evaluate import evaluate
from regnet.report.measures import Measures, from_json, to_json, write_json


def evaluate_cases(
    cases: Sequence[Case],
    protocol: Protocol,
    keep: Path | None = None,
    jobs: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> dict[str, Measures]:
    """Measure many pairs.

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
        The measures by id, in the order of the cases.

    Raises:
        InputError: a file cannot be used. What was done before is kept.
    """
    found: dict[str, Measures] = {}
    left = []
    for case in cases:
        measures = None if keep is None else _kept(keep, case, protocol)
        if measures is None:
            left.append(case)
        else:
            found[case.pair.id] = measures
            progress()
    if jobs == 1 or len(left) < 2:
        for case in left:
            found[case.pair.id] = _evaluate(case, protocol, keep)
            progress()
    else:
        found |= _in_parallel(left, protocol, keep, min(jobs, len(left)), progress)
    return {case.pair.id: found[case.pair.id] for case in cases}


def _in_parallel(
    cases: Sequence[Case], protocol: Protocol, keep: Path | None, jobs: int, progress: Callable[[], None]
) -> dict[str, Measures]:
    threads = max(1, torch.get_num_threads() // jobs)
    # Not forked: torch's threads do not survive it.
    context = multiprocessing.get_context("spawn")
    found = {}
    with ProcessPoolExecutor(jobs, context, initializer=_ready, initargs=(threads,)) as pool:
        waiting = {pool.submit(_elsewhere, case, protocol, keep): case.pair.id for case in cases}
        try:
            for done in as_completed(waiting):
                found[waiting[done]], messages = done.result()
                for message in messages:
                    warnings.warn(message, stacklevel=2)
                progress()
        except BaseException:
            pool.shutdown(cancel_futures=True)  # those being worked on are finished, and kept
            raise
    return found


def _ready(threads: int) -> None:
    """Prepare a process of the pool: an interruption is its parent's business, who lets it finish its case."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(threads)


def _elsewhere(case: Case, protocol: Protocol, keep: Path | None) -> tuple[Measures, list[str]]:
    """A case in a process of the pool, and the warnings that are to be shown by its parent."""
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
    except (OSError, ValueError, KeyError, TypeError):  # none, or not ours: measured anew
        return None


def _state(case: Case, protocol: Protocol) -> str:
    """A digest of all that a case's figures depend on."""
    files = [(os.fspath(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in case.files()]
    return hashlib.sha256(json.dumps([__version__, asdict(protocol), files]).encode()).hexdigest()
