"""How far a long piece of work is: a bar on a terminal, a line now and then elsewhere."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

_EVERY = 30.0  # seconds between lines

Told = Callable[[int, str], None]
"""Takes how many are done, and a word about them."""


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Told]:
    """Tell on stderr how far the block is.

    Args:
        what: the work, such as ``refining``.
        total: how many steps it has; None: nobody knows.
    """
    console = Console(stderr=True)
    if console.is_terminal:
        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}"))
        times = (TimeElapsedColumn(), TimeRemainingColumn())
        with Progress(TextColumn("{task.description}"), *columns, *times, console=console, transient=True) as bar:
            task = bar.add_task(what, total=total, note="", visible=total != 0)
            yield lambda done, note: bar.update(task, completed=done, note=note)
        return
    began, over = time.monotonic(), threading.Event()
    state = (0, "")

    def tell(done: int, note: str) -> None:
        nonlocal state
        state = (done, note)

    def speak() -> None:
        while not over.wait(_EVERY):
            print(_line(what, total, *state, time.monotonic() - began), file=sys.stderr, flush=True)

    speaker = threading.Thread(target=speak, daemon=True)
    speaker.start()
    try:
        yield tell
    finally:
        over.set()
        speaker.join()


def _line(what: str, total: int | None, done: int, note: str, seconds: float) -> str:
    words = [what if not total else f"{what}: {done} of {total}", *([note] if note else []), f"{seconds:.0f} s"]
    if total and 0 < done < total:
        words.append(f"about {seconds * (total - done) / done:.0f} s left")
    return ", ".join(words)
