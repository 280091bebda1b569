"""A trial as an experiment file, the unit that people share."""

from collections.abc import Callable, Sequence
from typing import Any

import yaml

_NOT_OF_A_RUN = ("hparams_search",)


def experiment(words: Sequence[str], is_group: Callable[[str], bool], comment: str) -> str:
    """Write overrides as a file of the group ``experiment``.

    Args:
        words: ``key=value``, with or without ``+`` before; of two with the same key the later counts.
        is_group: whether a key chooses a file of a group.
        comment: its first line.
    """
    bases: list[Any] = []
    groups: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for word in words:
        key, _, text = word.lstrip("+").partition("=")
        value = yaml.safe_load(text)
        if key == "experiment":
            bases.append(value)
        elif is_group(key):
            groups[f"override /{key}"] = value
        else:
            *path, last = key.split(".")
            node = values
            for part in path:
                node = node.setdefault(part, {})
            node[last] = _number(value)
    for key in _NOT_OF_A_RUN:
        groups.pop(f"override /{key}", None)
    defaults = [*bases, "_self_", *({group: name} for group, name in groups.items())]
    content = yaml.safe_dump({"defaults": defaults, **values}, sort_keys=False, allow_unicode=True)
    return f"# @package _global_\n# {comment}\n{content}"


def _number(value: Any) -> Any:
    """YAML 1.1 takes 1e-3, without a point, for text."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value
