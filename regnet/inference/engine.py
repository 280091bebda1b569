"""Work on many things in several processes, whatever becomes of one of them."""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from regnet.errors import InputError

ENGINES = ("local", "ray")
_TRIES = 3  # of what was on a machine that went away

Item = TypeVar("Item")
Outcome = tuple[int, Any]


def run_each(
    work: Callable[[Item], Any], items: Sequence[Item], jobs: int = 1, engine: str = "local"
) -> Iterator[Outcome]:
    """Do something with each of many items, several at a time, each in another process.

    No more than ``jobs`` items are under way, and nothing but what ``work`` returns is held. Where a process is ended
    from outside (out of memory, a machine that goes away), its item is tried again.

    Args:
        work: a function of a module; it sets its own threads. What it raises is an outcome too.
        items: what to work on; they travel to other processes.
        jobs: how many at a time.
        engine: ``local``: processes of this machine; ``ray``: a Ray cluster, that of ``RAY_ADDRESS``, else one that is
            started here for the while.

    Yields:
        The index of an item, and what ``work`` returned or the exception that ended it, as they are done.

    Raises:
        InputError: Ray is not installed.
    """
    return (_on_ray if engine == "ray" else _locally)(work, items, jobs)


def _locally(work: Callable[[Item], Any], items: Sequence[Item], jobs: int) -> Iterator[Outcome]:
    # A pool dies with one of its processes, and does not say whose fault it was: those are tried again one by one.
    left, suspects = deque(range(len(items))), deque[int]()
    while left or suspects:
        queue, width = (left, jobs) if left else (suspects, 1)
        is_alone, running, broken = queue is suspects, dict[Future[Any], int](), False
        context = multiprocessing.get_context("spawn")  # not forked: torch's threads do not survive it
        with ProcessPoolExecutor(width, context, initializer=_ready) as pool:
            while running or (queue and not broken):
                while queue and not broken and len(running) < width:
                    try:
                        running[pool.submit(work, items[queue[0]])] = queue[0]
                        queue.popleft()
                    except BrokenProcessPool:
                        broken = True
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    index, error = running.pop(future), future.exception()
                    broken |= isinstance(error, BrokenProcessPool)
                    if isinstance(error, BrokenProcessPool) and not is_alone:
                        suspects.append(index)
                    else:
                        yield index, error or future.result()


def _ready() -> None:
    """An interruption is the parent's business, who lets this process finish its item."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _on_ray(work: Callable[[Item], Any], items: Sequence[Item], jobs: int) -> Iterator[Outcome]:
    try:
        import ray
    except ImportError as error:
        raise InputError("--engine ray needs Ray: pip install 'regnet[ray]'") from error
    address = os.environ.get("RAY_ADDRESS")
    if address:
        ray.init(address=address, log_to_driver=False)
    else:
        ray.init(num_cpus=jobs, include_dashboard=False, log_to_driver=False)
    try:
        task = ray.remote(max_retries=_TRIES)(work)
        left, running = deque(range(len(items))), dict[Any, int]()
        while left or running:
            while left and len(running) < jobs:
                index = left.popleft()
                running[task.remote(items[index])] = index
            for done in ray.wait(list(running))[0]:
                index = running.pop(done)
                try:
                    yield index, ray.get(done)
                except ray.exceptions.RayError as error:
                    yield index, error
    finally:
        ray.shutdown()
