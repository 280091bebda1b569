"""What a training run logged: its numbers by name, and its pictures."""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from regnet.errors import InputError

Curve = tuple[Sequence[float], Sequence[float]]
"""Epochs and values; a value at the end of the first epoch is at 1."""


@dataclass(frozen=True)
class Log:
    """Curves of a run by name: ``train/loss``, ``val/dice``, ``step/loss``."""

    curves: Mapping[str, Curve]

    def terms(self) -> list[str]:
        """The names of the loss's terms."""
        marked = "train/weighted/"
        return [name.removeprefix(marked) for name in self.curves if name.startswith(marked)]

    def measures(self) -> list[str]:
        """What was measured on the validation pairs besides the loss and its terms."""
        known = {"loss", *self.terms()}
        names = (name.removeprefix("val/") for name in self.curves if name.startswith("val/"))
        return [name for name in names if name not in known and not name.startswith("weighted/")]


def read_log(folder: Path) -> Log:
    """Read the CSV files of a run, those of its parts in order where it was gone on with.

    Raises:
        InputError: there is none, or it is not one of Lightning's.
    """
    files = sorted(folder.glob("csv/version_*/metrics.csv"), key=lambda path: int(path.parent.name.split("_")[1]))
    if not files:
        raise InputError(f"{folder}: has no csv/version_0/metrics.csv; a run with logger=csv or default writes it")
    rows = [row for path in files for row in _rows(path)]
    # An epoch that was cut off says nothing of how many steps one has.
    ends = [row for row in rows if any(name.startswith(("train/", "val/")) for name in row)] or rows
    steps = (max(row["step"] for row in ends) + 1) / (max(row["epoch"] for row in ends) + 1)
    curves: dict[str, dict[float, float]] = {}
    for row in rows:
        for name, value in row.items():
            if name not in ("epoch", "step"):
                at = (row["step"] + 1) / steps if name.startswith("step/") else row["epoch"] + 1
                curves.setdefault(name, {})[at] = value  # of an epoch that was done twice, the last
    return Log({name: tuple(zip(*sorted(points.items()), strict=True)) for name, points in curves.items()})  # type: ignore[misc]


def _rows(path: Path) -> list[dict[str, float]]:
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            lines = list(csv.DictReader(stream))
        rows = [{name: float(cell) for name, cell in line.items() if name and cell} for line in lines]
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read ({error})") from error
    if not rows or not all("epoch" in row and "step" in row for row in rows):
        raise InputError(f"{path}: has no rows with epoch and step")
    return [{name: value for name, value in row.items() if not math.isnan(value)} for row in rows]


def read_panels(folder: Path) -> list[tuple[int, bytes]]:
    """The first and the last picture that a run gave to TensorBoard: its step, and a PNG. None where it gave none."""
    if not any(folder.glob("tensorboard/**/events.out.tfevents.*")):
        return []
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / "tensorboard"), size_guidance={"images": 0})
    events.Reload()
    tag = "val/panels"
    found = events.Images(tag) if tag in events.Tags()["images"] else []
    ends = found[:1] + found[-1:] if len(found) > 1 else found
    return [(each.step, each.encoded_image_string) for each in ends]
