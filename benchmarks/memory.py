"""Peak memory of a warp and its backward beyond inputs, output and gradients, in scalar fields of the image's size.

Each contestant has a process of its own. It reads ``VmHWM``, the most memory the process ever held, after telling
Linux to start counting anew, so that whoever allocates is seen: torch, the core, or the C library.
"""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import peers
import torch
from torch import Tensor

from regnet import ops

RESET = Path("/proc/self/clear_refs")  # Linux only


def fields_beyond(who: str, size: Sequence[int], threads: int) -> float:
    """Fields that "regnet" or "torch" made besides its results."""
    words = [sys.executable, __file__, who, str(threads), *map(str, size)]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def warp(who: str, image: Tensor, flow: Tensor) -> Tensor:
    """One warp; torch's makes its grid from the displacement, as it must."""
    if who == "regnet":
        return ops.warp(image, flow)
    return peers.grid_sample(image, peers.normalised(ops.identity(image.shape[2:]) + flow))()


def measure(who: str, size: Sequence[int]) -> float:
    """In this process."""
    held_before = peak = results = 0
    for shape in ((8, 8, 8), size):  # the small one loads what is loaded at the first call
        image, flow, cotangent = (torch.randn(1, c, *shape) for c in (1, 3, 1))
        image.requires_grad_()
        flow.requires_grad_()
        RESET.write_text("5")
        held_before = status("VmRSS")
        moved = warp(who, image, flow)
        gradients = torch.autograd.grad(moved, (image, flow), cotangent)
        peak = status("VmHWM")
        results = sum(t.numel() for t in (moved, *gradients))
    return ((peak - held_before) / 4 - results) / image.numel()


def status(name: str) -> int:
    """Bytes, from what Linux tells of this process."""
    found = re.search(rf"^{name}:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return 1024 * int(found.group(1))


if __name__ == "__main__":
    _, who, threads, *size = sys.argv
    torch.set_num_threads(int(threads))
    print(measure(who, [int(n) for n in size]))
