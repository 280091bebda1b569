"""Sweeps by Hydra."""

import importlib
import os
import sys
from pathlib import Path

from hydra.core.plugins import Plugins

_FOLDER = str(Path(__file__).resolve().parents[2] / "plugins")


def find_plugins() -> None:
    """Let Hydra find our sweeper, here and in the processes that a launcher starts."""
    if _FOLDER not in sys.path:
        sys.path.append(_FOLDER)
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if _FOLDER not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([*paths, _FOLDER])
    # Hydra looks once in a process, and that may have been before.
    Plugins.instance().register(importlib.import_module("hydra_plugins.regnet_sweeper").RegnetSweeper)
