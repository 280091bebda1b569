"""Many items in several processes: what raises and what is killed stops nobody else."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from regnet.inference.engine import run_each

Item = tuple[Path, str]


def work(item: Item) -> str:
    """Returns its name, raises, or is killed: always, or the first time."""
    folder, name = item
    if name == "raises":
        raise ValueError("cannot be done")
    if name == "dies" or (name == "dies once" and not (folder / "died").exists()):
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return name


def outcomes(work: Callable[[Item], str], folder: Path, names: list[str], engine: str) -> dict[str, object]:
    items = [(folder, name) for name in names]
    return {names[index]: outcome for index, outcome in run_each(work, items, jobs=2, engine=engine)}


def test_one_that_raises_and_one_that_is_killed_leave_the_others_alone(tmp_path: Path) -> None:
    names = ["a", "raises", "dies once", "dies", "b", "c"]
    found = outcomes(work, tmp_path, names, "local")
    assert set(found) == set(names)
    assert all(found[name] == name for name in ("a", "dies once", "b", "c"))
    assert isinstance(found["raises"], ValueError)
    assert isinstance(found["dies"], Exception)


def test_nothing_to_do_is_done(tmp_path: Path) -> None:
    assert list(run_each(work, [], jobs=2)) == []


def test_ray_does_the_same_with_two_workers_of_which_one_is_killed(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    names = ["a", "dies once", "raises", "b"]
    found = outcomes(work, tmp_path, names, "ray")
    assert (tmp_path / "died").exists()
    assert all(found[name] == name for name in ("a", "dies once", "b"))
    assert "cannot be done" in str(found["raises"])
