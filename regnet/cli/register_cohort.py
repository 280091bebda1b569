"""``regnet register --pairs`` and ``--dataset``: many pairs, each as the command would do it alone."""

import argparse
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from copy import copy
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import torch

from regnet import __version__
from regnet.cli.output import SOME_FAILED, check_folder
from regnet.cli.progress import progress
from regnet.cli.register_files import NAMED
from regnet.data.learn2reg import displacement_names, read_dataset, write_submission
from regnet.data.table import Pair, read_pairs
from regnet.errors import InputError, reason
from regnet.inference import load_model, shipped_model
from regnet.inference.engine import run_each
from regnet.inference.manifest import (
    DONE,
    FAILED,
    RUNNING,
    Manifest,
    describe_inputs,
    describe_outputs,
    is_current,
    read_manifest,
    sha256,
    write_manifest,
    written_before,
)
from regnet.inference.registered import describe_pair
from regnet.io import check_output, claimed
from regnet.io.within import is_within
from regnet.memory import keep_freed

_USUAL = {"moved": "{id}_moved.nii.gz", "warp": "{id}_warp.nii.gz", "moved_labels": "{id}_moved_labels.nii.gz"}
_OF_A_PAIR = ("moving", "fixed", "moving_labels", "moving_mask", "fixed_mask", "initial_transform")
# Options that say which pairs, where, and with what of the machine: the result of a pair is the same.
_AROUND = ("verb", "pairs", "dataset", "split", "out", "jobs", "shard", "engine", "format", "threads", "overwrite")
_SHARD = re.compile(r"(\d+)/(\d+)")


@dataclass(frozen=True)
class Task:
    """One pair of a cohort; it travels to the process that works on it.

    Attributes:
        arguments: of :func:`regnet.cli.register.run`.
        pair: its row, in plain words.
        files: what is written, by what it is.
        inputs: every file that is read.
        settings: what the result depends on besides.
        manifest: the file that tells of it.
        stale: files of an earlier run, to be removed before this one.
    """

    id: str
    arguments: argparse.Namespace
    pair: dict[str, Any]
    files: dict[str, Path]
    inputs: tuple[Path, ...]
    settings: dict[str, Any]
    manifest: Path
    stale: tuple[Path, ...] = ()

    @property
    def folder(self) -> Path:
        """The cohort's."""
        return self.manifest.parent.parent


def run_cohort(
    args: argparse.Namespace,
    run: Callable[[argparse.Namespace], int],
    check: Callable[[argparse.Namespace], dict[str, Path]],
) -> int:
    """Register every pair of a table or data set that is not done yet.

    Args:
        args: of the command.
        run: does one pair.
        check: refuses options that cannot work, and gives the files that a pair writes by what they are.

    Returns:
        0, or 3 where pairs failed; they are listed.

    Raises:
        InputError: options or names that cannot work, or a table or model that cannot be read.
    """
    _check(args)
    pairs = list(read_dataset(args.dataset, args.split)) if args.dataset else _rows(args.pairs, args.split)
    tasks = _tasks(args, pairs, check)
    mine = tasks[_shard(args.shard)]
    owners = _owners(args.out, tasks)
    waiting = [_with_stale(task, owners) for task in mine if args.overwrite or not _is_done(task)]
    failed: dict[str, str] = {}
    work = _Work(run)
    with progress("registering", len(waiting)) as tell:
        for done, (index, outcome) in enumerate(run_each(work, waiting, args.jobs, args.engine), start=1):
            manifest = outcome if isinstance(outcome, dict) else _lost(waiting[index], outcome)
            for message in manifest["warnings"]:
                print(f"regnet: warning: {manifest['id']}: {message}", file=sys.stderr)
            if manifest["status"] != DONE:
                failed[manifest["id"]] = manifest["error"]
            tell(done, f"{len(failed)} failed" if failed else "")
    print(
        f"{len(mine) - len(failed)} of {len(mine)} pairs are done ({len(mine) - len(waiting)} were before): {args.out}"
    )
    for name, error in failed.items():
        print(f"regnet: failed: {name}: {error}", file=sys.stderr)
    if args.dataset and not failed:
        _submit(args, pairs, tasks)
    return SOME_FAILED if failed else 0


def _check(args: argparse.Namespace) -> None:
    source = "--pairs" if args.pairs else "--dataset"
    for name in _OF_A_PAIR:
        if getattr(args, name) is not None:
            raise InputError(f"--{name.replace('_', '-')} is of one pair; with {source} it comes from there")
    if args.out is None:
        raise InputError(f"{source} needs --out, a folder")
    check_folder(args.out, "--out")
    if args.jobs < 1:
        raise InputError(f"--jobs {args.jobs}: at least 1 is needed")
    if (args.format is not None) != (args.dataset is not None):
        raise InputError("--dataset and --format learn2reg belong together: give both or neither")
    if args.format and any(getattr(args, name) is not None for name in NAMED):
        raise InputError("--format learn2reg says what is written, and how it is called; give no other output")


def _rows(table: Path, split: str | None) -> list[Pair]:
    pairs = [pair for pair in read_pairs(table) if split in (None, pair.split)]
    if not pairs:
        raise InputError(f"{table}: no row has the split {split!r}")
    return pairs


def _shard(word: str | None) -> slice:
    """Which of the pairs are this run's."""
    found = _SHARD.fullmatch(word or "0/1")
    if not found or not int(found[1]) < int(found[2]):
        raise InputError(f"--shard {word}: give i/n with i from 0 to n - 1, such as $SLURM_ARRAY_TASK_ID/100")
    return slice(int(found[1]), None, int(found[2]))


def _tasks(
    args: argparse.Namespace, pairs: Sequence[Pair], check: Callable[[argparse.Namespace], dict[str, Path]]
) -> list[Task]:
    around = {*_AROUND, *_OF_A_PAIR, *NAMED, "model"}
    settings = {name: value for name, value in vars(args).items() if name not in around}
    model = None
    if args.model != "none":
        # Loaded here once to fail early; and the others take this very file, whatever a training writes meanwhile.
        model = load_model(args.model or shipped_model(), trust=args.trust).path
        settings["model"] = sha256(model)
    tasks, taken = [], dict[Path, str]()
    for pair in pairs:
        names = _names(args, pair)
        about = copy(args)
        about.pairs = about.dataset = about.out = None
        about.model = args.model and str(model or "none")
        about.threads = args.threads or max(1, torch.get_num_threads() // args.jobs)
        about.moving, about.fixed = list(pair.moving), list(pair.fixed)
        about.initial_transform = pair.initial_transform
        about.moving_mask, about.fixed_mask = pair.moving_mask, pair.fixed_mask
        about.moving_labels = pair.moving_labels if "moved_labels" in names else None
        for name in NAMED:
            named = os.path.join(args.out, names[name]) if name in names else None
            setattr(about, name, named if named is None or name == "prefix" else Path(named))
        files = check(about)
        for path in files.values():
            if not is_within(args.out, path):
                raise InputError(
                    f"{path}: is no name in --out {args.out}; names there have no .., no control characters, do not "
                    "begin with / and follow no link that leads out"
                )
            if path in taken:
                raise InputError(
                    f"{path}: would be written by {taken[path]!r} and {pair.id!r}; put {{id}} into the name"
                )
            taken[path] = pair.id
        alone = (pair.moving_mask, pair.fixed_mask, pair.initial_transform, about.moving_labels)
        inputs = (*pair.moving, *pair.fixed, *(path for path in alone if path is not None))
        manifest = args.out / "manifests" / f"{pair.id}.json"
        tasks.append(Task(pair.id, about, describe_pair(pair), files, inputs, settings | {"files": names}, manifest))
    return tasks


def _owners(out: Path, tasks: Sequence[Task]) -> dict[str, str]:
    """Who writes a file, by its real path: the id of a pair; nobody what is an input of any.

    Raises:
        InputError: a file is an output of one pair and an input of one.
    """
    owners = {os.path.realpath(path): task.id for task in tasks for path in task.files.values()}
    for task in tasks:
        for path in map(os.path.realpath, task.inputs):
            if owners.setdefault(path, ""):
                raise InputError(
                    f"{path}: is an input of {task.id!r} and an output of {owners[path]!r}; give another name or --out"
                )
    return owners


def _with_stale(task: Task, owners: Mapping[str, str]) -> Task:
    """The task with what its manifest says of before, but for files that are read, or others' to write, now."""
    before = written_before(task.manifest)
    return replace(task, stale=tuple(path for path in before if owners.get(os.path.realpath(path), task.id) == task.id))


def _names(args: argparse.Namespace, pair: Pair) -> dict[str, str]:
    """What is written for a pair, and its name in the folder."""
    if args.format:
        names = displacement_names(pair)
        if not names:
            raise InputError(f"{args.dataset}: {pair.fixed[0].name} is no name of Learn2Reg's, TASK_0001_0000.nii.gz")
        return {"displacement": f"{names[0]}.nii.gz"}
    asked = {name: str(getattr(args, name)) for name in NAMED if getattr(args, name) is not None} or dict(_USUAL)
    if pair.moving_labels is None:
        asked.pop("moved_labels", None)
    words = {"id": pair.id, "fixed": _stem(pair.fixed[0]), "moving": _stem(pair.moving[0])}
    try:
        return {name: word.format(**words) for name, word in asked.items()}
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        raise InputError(
            f"output names may hold {{id}}, {{fixed}} and {{moving}}: {', '.join(asked.values())}"
        ) from error


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").rsplit(".", 1)[0]


def _is_done(task: Task) -> bool:
    return is_current(task.manifest, __version__, task.settings, task.inputs)


@dataclass(frozen=True)
class _Work:
    """What another process does with a task; it returns the manifest, whatever happens."""

    run: Callable[[argparse.Namespace], int]

    def __call__(self, task: Task) -> Manifest:
        keep_freed()  # each process for itself
        began, told = time.time(), StringIO()
        manifest: Manifest = {
            **{
                "id": task.id,
                "status": RUNNING,
                "error": "",
                "warnings": [],
                "began": began,
                "seconds": 0.0,
                "told": [],
            },
            **{"version": __version__, "torch": torch.__version__, "settings": task.settings, "inputs": {}},
            "pair": task.pair,
            "outputs": {os.path.relpath(path, task.folder): {} for path in task.files.values()},
        }
        try:
            with (
                claimed(task.manifest),
                redirect_stdout(told),
                redirect_stderr(told),
                warnings.catch_warnings(record=True) as caught,
            ):
                warnings.simplefilter("always", UserWarning)
                try:
                    self._work(task, manifest)
                except Exception as error:
                    manifest |= {"status": FAILED, "error": reason(error), "outputs": {}}
                manifest["warnings"] = [reason(each.message) for each in caught if each.category is UserWarning]
                manifest["told"] = told.getvalue().splitlines()
                manifest["seconds"] = round(time.time() - began, 3)
                write_manifest(task.manifest, manifest)
        except InputError as error:  # another run has it, or the folder cannot be written
            manifest |= {"status": FAILED, "error": reason(error)}
        return manifest

    def _work(self, task: Task, manifest: Manifest) -> None:
        # Nothing of an earlier try is left where this one may fail.
        for path in task.stale:
            path.unlink(missing_ok=True)
        for path in task.files.values():
            check_output(path, task.arguments.overwrite)
        write_manifest(task.manifest, manifest)
        manifest["inputs"] = describe_inputs(task.inputs)
        self.run(task.arguments)
        manifest |= {"status": DONE, "outputs": describe_outputs(task.files.values(), task.folder)}


def _lost(task: Task, error: BaseException) -> Manifest:
    """Of a pair whose process was ended from outside."""
    told = f"its process was ended from outside, out of memory? ({type(error).__name__})"
    manifest: Manifest = {"id": task.id, "status": FAILED, "error": told, "warnings": [], "seconds": 0.0, "told": []}
    before = read_manifest(task.manifest)
    for path in task.files.values() if before and before["status"] == RUNNING else ():
        path.unlink(missing_ok=True)
    manifest |= {"version": __version__, "settings": task.settings, "inputs": {}, "outputs": {}, "pair": task.pair}
    write_manifest(task.manifest, manifest)
    return manifest


def _submit(args: argparse.Namespace, pairs: Sequence[Pair], tasks: Sequence[Task]) -> None:
    """Pack the displacements once all shards are done."""
    left = sum(not _is_done(task) for task in tasks)
    if left:
        print(f"{left} of {len(tasks)} pairs are not done yet; the last shard packs them")
        return
    print(write_submission(args.out, pairs))
