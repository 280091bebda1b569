"""What a sweep chooses from."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from regnet.errors import InputError


@dataclass(frozen=True)
class Choice:
    """One of several values, as they are typed."""

    values: tuple[str, ...]


@dataclass(frozen=True)
class Interval:
    """A number between two, both included; ``log``: evenly by orders of magnitude."""

    low: float
    high: float
    log: bool = False
    integer: bool = False


Space: TypeAlias = Mapping[str, Choice | Interval]


def grid(space: Space) -> Sequence[dict[str, str]]:
    """Every combination, the last key fastest.

    Raises:
        InputError: a range has no end of values; the message says what has.
    """
    values = []
    for key, choice in space.items():
        if isinstance(choice, Interval):
            raise InputError(f"{key}: a grid needs single values, {key}=A,B,C; an interval needs hparams_search=optuna")
        values.append(choice.values)
    return [dict(zip(space, each, strict=True)) for each in itertools.product(*values)]


def to_plain(space: Space) -> dict[str, Any]:
    """A space as JSON holds it."""
    kinds = {key: {**asdict(each), "kind": type(each).__name__} for key, each in space.items()}
    return {
        key: {name: list(v) if isinstance(v, tuple) else v for name, v in each.items()} for key, each in kinds.items()
    }


def from_plain(plain: Mapping[str, Any]) -> dict[str, Choice | Interval]:
    """And back."""
    found: dict[str, Choice | Interval] = {}
    for key, each in plain.items():
        rest = {name: value for name, value in each.items() if name != "kind"}
        found[key] = Interval(**rest) if each["kind"] == "Interval" else Choice(tuple(each["values"]))
    return found
