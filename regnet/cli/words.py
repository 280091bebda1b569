"""Words of the command line that Hydra would not take as they are."""

from collections.abc import Sequence

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException


def quoted(words: Sequence[str]) -> list[str]:
    """Put quotes around values that Hydra's grammar has no place for, such as ``a(1).csv`` or letters beyond ASCII.

    Args:
        words: overrides, ``KEY=VALUE``. Flags and what Hydra can read stay as they are.
    """
    parser = OverridesParser.create()
    return [word if _readable(word, parser) else _quoted(word) for word in words]


def _readable(word: str, parser: OverridesParser) -> bool:
    if word.startswith("-") or "=" not in word:
        return True
    try:
        parser.parse_override(word)
    except HydraException:
        return False
    return True


def _quoted(word: str) -> str:
    key, _, value = word.partition("=")
    if value[:1] in ("'", '"', "[", "{"):  # meant as it is: let Hydra say what is wrong with it
        return word
    # Hydra takes a backslash for itself only before a quote.
    escaped = value.replace("\\'", "\\\\'").replace("'", "\\'")
    return f"{key}='{escaped}'"
