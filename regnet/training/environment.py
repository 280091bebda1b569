"""What a run was made with and by which command: so that it can be made again."""

import json
import os
import platform
import shlex
import sys
import time
from importlib import metadata
from pathlib import Path

import torch

from regnet import __version__
from regnet.io import atomic_path
from regnet.ops._core import isa

_FILE = "environment.json"
_PACKAGES = ("lightning", "numpy", "scipy", "nibabel", "hydra-core")


def write_environment(folder: Path) -> None:
    """Keep it as ``environment.json`` in a run's folder; of a run that goes on, the last.

    Raises:
        InputError: it cannot be written.
    """
    about = {
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "started": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "regnet": __version__,
        "compiled core": isa(),
        "Python": platform.python_version(),
        "torch": str(torch.__version__),
        **{name: metadata.version(name) for name in _PACKAGES},
        "machine": f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} cores",
        "threads": torch.get_num_threads(),
        "GPU": torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
    }
    with atomic_path(folder / _FILE, overwrite=True) as temporary:
        temporary.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


def read_environment(folder: Path) -> dict[str, object]:
    """What :func:`write_environment` kept; nothing where there is no such file that can be read."""
    try:
        found = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
