"""What trials are compared by."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from regnet.errors import InputError

QUALITY = "quality"
_QUALITIES = ("val/dice", "val/tre", "val/similarity")  # the first that a trial has logged
_HIGHER_IS_BETTER = ("val/dice",)
_WEIGHT = re.compile(r"loss\.terms\.\w+\.weight")


def quality(metrics: Mapping[str, float]) -> str:
    """The name of the value that says how well a trial registers: overlap, else landmarks, else likeness.

    Raises:
        InputError: none of them was logged.
    """
    for name in _QUALITIES:
        if name in metrics:
            return name
    known = ", ".join(sorted(metrics))
    raise InputError(f"objective: a sweep needs one of {', '.join(_QUALITIES)}, and only {known} were logged")


def costs(metrics: Mapping[str, float], objectives: Sequence[str]) -> dict[str, float]:
    """What is to be minimised.

    Args:
        metrics: what a trial came to, by name.
        objectives: names of metrics; ``quality`` stands for what :func:`quality` finds.

    Returns:
        By name: the value, or ``1 - value`` (named so) where higher is better.

    Raises:
        InputError: there is no such metric; the message lists those there are.
    """
    found = {}
    for objective in objectives:
        name = quality(metrics) if objective == QUALITY else objective
        if name not in metrics:
            raise InputError(f"objective: no {name!r} was logged, only {', '.join(sorted(metrics))}")
        higher = name in _HIGHER_IS_BETTER
        found[f"1 - {name}" if higher else name] = 1.0 - metrics[name] if higher else metrics[name]
    return found


def finite(values: Mapping[str, float]) -> bool:
    """Whether trials can be compared by these."""
    return all(map(math.isfinite, values.values()))


def refuse_loss(keys: Iterable[str], objectives: Sequence[str]) -> None:
    """A weight of the loss is not swept against the loss itself: the smallest weight would win, whatever it does.

    Raises:
        InputError: it would be.
    """
    weights = [key for key in keys if _WEIGHT.fullmatch(key)]
    if weights and "val/loss" in objectives:
        raise InputError(
            f"sweeping {weights[0]} against val/loss: the smallest weight would win, since it scales the loss; "
            f"take hydra.sweeper.objectives=[{QUALITY}] (val/dice, else val/tre, else val/similarity)"
        )
