"""Points in JSON: Slicer's ``.mrk.json`` and FreeSurfer's point sets; whatever else is in them stays."""

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regnet.errors import InputError

_SLICER_SPACES = {"RAS": "ras", "LPS": "lps", "0": "ras", "1": "lps"}


@dataclass(frozen=True)
class Slicer:
    """The control points of all markups of a file."""

    content: Any
    space: str | None
    usual: str | None = None

    @property
    def coordinates(self) -> list[list[float]]:
        """The points, as the file has them."""
        return [[float(x) for x in point["position"]] for point in self._points(self.content)]

    def render(self, coordinates: list[list[float]]) -> str:
        """The text of the file with other points in their place."""
        content = copy.deepcopy(self.content)
        for point, position in zip(self._points(content), coordinates, strict=True):
            point["position"] = position
        return json.dumps(content, indent=2) + "\n"

    @staticmethod
    def _points(content: Any) -> Iterator[dict]:
        return (point for markup in content["markups"] for point in markup["controlPoints"])


@dataclass(frozen=True)
class FreeSurfer:
    """A point set of freeview."""

    content: Any
    space: str | None = "ras"
    usual: str | None = None

    @property
    def coordinates(self) -> list[list[float]]:
        """The points, as the file has them."""
        return [[float(point["coordinates"][axis]) for axis in "xyz"] for point in self.content["points"]]

    def render(self, coordinates: list[list[float]]) -> str:
        """The text of the file with other points in their place."""
        content = copy.deepcopy(self.content)
        for point, position in zip(content["points"], coordinates, strict=True):
            point["coordinates"] = dict(zip("xyz", position, strict=True))
        return json.dumps(content, indent=2) + "\n"


def parse(text: str, path: Path) -> Slicer | FreeSurfer:
    """Take a text apart; ``path`` is for messages.

    Raises:
        InputError: it is none of the two, or its points are in a space of their own.
    """
    content = json.loads(text)
    try:
        if content.get("data_type") == "fs_pointset":
            if content.get("vox2ras") != "scanner_ras":
                raise InputError(f"{path}: its points are in {content.get('vox2ras')}; scanner_ras is needed")
            found: Slicer | FreeSurfer = FreeSurfer(content)
        else:
            said = {str(markup["coordinateSystem"]).upper() for markup in content["markups"]}
            if len(said) != 1 or not said <= _SLICER_SPACES.keys():
                raise InputError(
                    f"{path}: its points are in {', '.join(sorted(said)) or 'no'} space; RAS or LPS is needed"
                )
            found = Slicer(content, _SLICER_SPACES[said.pop()])
        if any(len(point) != 3 for point in found.coordinates):
            raise InputError(f"{path}: a point has three coordinates")
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise InputError(f"{path}: neither a list of markups (Slicer) nor a point set (FreeSurfer)") from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: a coordinate is no number") from error
    return found
