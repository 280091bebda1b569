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
    state, over = _State(what, total), threading.Event()

    def speak() -> None:
        while not over.wait(_EVERY):
            print(state, file=sys.stderr, flush=True)

    speaker = threading.Thread(target=speak, daemon=True)
    speaker.start()
    try:
        yield state.tell
    finally:
        over.set()
        speaker.join()


class _State:
    """How far some work is, as a line."""

    def __init__(self, what: str, total: int | None) -> None:
        self.what, self.total = what, total
        self.done, self.note = 0, ""
        self.began = time.monotonic()
        self.first: tuple[float, int] | None = None  # what comes before the first step says nothing about the others

    def tell(self, done: int, note: str) -> None:
        self.done, self.note = done, note
        self.first = self.first or (time.monotonic(), done)

    def __str__(self) -> str:
        now = time.monotonic()
        words = [f"{self.what}: {self.done} of {self.total}" if self.total else self.what]
        words += [*([self.note] if self.note else []), f"{now - self.began:.0f} s"]
        if self.total and self.first and self.first[1] < self.done < self.total:
            pace = (now - self.first[0]) / (self.done - self.first[1])
            words.append(f"about {pace * (self.total - self.done):.0f} s left")
        return ", ".join(words)
