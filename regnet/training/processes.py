"""The processes of one run: who starts them, and what they leave behind."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torch import distributed

from regnet.errors import InputError

_MEMBER = "REGNET_MEMBER_OF"  # the folder of the run whose further processes are started with this set


def joined_run() -> Path | None:
    """The folder of the run that this process was started for by Lightning, or None."""
    folder = os.environ.get(_MEMBER)
    return Path(folder) if folder else None


def is_first() -> bool:
    """Whether this process speaks for the run."""
    return not any(int(os.environ.get(name, 0)) for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID"))


def started_together() -> bool:
    """Whether torchrun or SLURM starts every process itself, each with the whole command."""
    return "TORCHELASTIC_RUN_ID" in os.environ or int(os.environ.get("SLURM_NTASKS", 1)) > 1


def check_common_folder(words: list[str]) -> None:
    """Refuse processes that would each make a folder of the time at which they started.

    Raises:
        InputError: the words set no folder.
    """
    if started_together() and not any(word.startswith(("hydra.run.dir=", "hydra.sweep.dir=")) for word in words):
        raise InputError("several processes need one folder: set hydra.run.dir=DIR (under -m, hydra.sweep.dir=DIR)")


@contextmanager
def further_processes(folder: Path) -> Iterator[None]:
    """Have the processes that Lightning starts join the run in ``folder``; afterwards this process can start others.

    Lightning repeats the command line for them, which would begin a grid anew; and leaves the variables and the process
    group of one run behind, with which the next job of a grid would wait for processes that have ended.
    """
    before = dict(os.environ)
    os.environ[_MEMBER] = str(folder)
    try:
        yield
    finally:
        if distributed.is_available() and distributed.is_initialized() and not started_together():
            distributed.destroy_process_group()
        os.environ.clear()
        os.environ.update(before)
