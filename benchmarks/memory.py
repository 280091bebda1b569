"""Peak memory of a call and its backward beyond inputs, output and gradients, in scalar fields of the image's size.

Each contestant has a process of its own. It reads ``VmHWM``, the most memory the process ever held, after telling
Linux to start counting anew, so that whoever allocates is seen: torch, the core, or the C library.
"""

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import peers
import torch
from torch import Tensor

from regnet import losses, ops

RESET = Path("/proc/self/clear_refs")  # Linux only


def fields_beyond(task: str, who: str, size: Sequence[int], threads: int) -> float:
    """Fields that ``who`` made for the task besides its results."""
    words = [sys.executable, __file__, task, who, str(threads), *map(str, size)]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def warp(who: str, size: Sequence[int]) -> Callable[[], Sequence[Tensor]]:
    """One warp and both gradients; torch's makes its grid from the displacement, as it must."""
    image, flow, cotangent = (torch.randn(1, c, *size) for c in (1, 3, 1))
    image.requires_grad_()
    flow.requires_grad_()

    def call() -> Sequence[Tensor]:
        if who == "regnet":
            moved = ops.warp(image, flow)
        else:
            moved = peers.grid_sample(image, peers.normalised(ops.identity(image.shape[2:]) + flow))()
        return moved, *torch.autograd.grad(moved, (image, flow), cotangent)

    return call


def lncc(who: str, size: Sequence[int]) -> Callable[[], Sequence[Tensor]]:
    """The local correlation with window 9, and its gradient in the moved image."""
    moved, fixed = torch.rand(1, 1, *size).requires_grad_(), torch.rand(1, 1, *size)
    if who == "regnet":
        return lambda: torch.autograd.grad(losses.lncc(moved, fixed, 9), moved)
    loss = {"monai": peers.monai_lncc, "neurite": peers.neurite_lncc}[who](moved, fixed, 9)
    return lambda: torch.autograd.grad(loss(), moved)


TASKS = {"warp": warp, "lncc": lncc}


def measure(task: str, who: str, size: Sequence[int]) -> float:
    """In this process."""
    held_before = peak = results = 0
    for shape in ((9, 9, 9), size):  # the small one loads what is loaded at the first call
        call = TASKS[task](who, shape)
        RESET.write_text("5")
        held_before = status("VmRSS")
        made = call()
        peak = status("VmHWM")
        results = sum(t.numel() for t in made)
    return ((peak - held_before) / 4 - results) / torch.Size(size).numel()


def status(name: str) -> int:
    """Bytes, from what Linux tells of this process."""
    found = re.search(rf"^{name}:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return 1024 * int(found.group(1))


if __name__ == "__main__":
    _, task, who, threads, *size = sys.argv
    torch.set_num_threads(int(threads))
    print(measure(task, who, [int(n) for n in size]))
