"""The words of a sweep: what is chosen from, and what is the same in every trial."""

from collections.abc import Sequence
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import IntervalSweep, Override

from regnet.errors import InputError
from regnet.sweeps import Choice, Interval


def read_words(words: Sequence[str], loader: Any) -> tuple[dict[str, Choice | Interval], list[str]]:
    """Sort overrides; of two with the same key the later counts.

    Args:
        words: in Hydra's grammar: ``a=1,2``, ``a=range(1,5)``, ``a=interval(0,1)``, ``a=tag(log,interval(1e-4,1e-2))``.
        loader: Hydra's, which knows the groups.

    Returns:
        What is chosen from, by key; and the words with one value.
    """
    space: dict[str, Choice | Interval] = {}
    fixed: dict[str, str] = {}
    for override in OverridesParser.create(config_loader=loader).parse_overrides(list(words)):
        key = override.get_key_element()
        space.pop(key, None)
        fixed.pop(key, None)
        if override.is_sweep_override():
            space[key] = _choice(key, override)
        else:
            fixed[key] = f"{key}={override.get_value_element_as_str()}"
    return space, list(fixed.values())


def _choice(key: str, override: Override) -> Choice | Interval:
    if override.is_discrete_sweep():
        return Choice(tuple(str(value) for value in override.sweep_string_iterator()))
    sweep = override.value()
    if not isinstance(sweep, IntervalSweep) or sweep.start is None or sweep.end is None or sweep.start >= sweep.end:
        raise InputError(f"{key}: expected values A,B,C or interval(LOW,HIGH) with LOW below HIGH")
    log = "log" in sweep.tags
    if log and sweep.start <= 0:
        raise InputError(f"{key}: an interval by orders of magnitude starts above 0, not at {sweep.start}")
    integer = isinstance(sweep.start, int) and isinstance(sweep.end, int)
    return Interval(sweep.start, sweep.end, log, integer)
