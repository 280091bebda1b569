"""Freed memory that a process keeps."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource
import torch
from regnet.memory import keep_freed

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

if {keep}:
    keep_freed()
for _ in range(24):  # an aligned block fits into a freed one of its size only together with what lies beside it
    before = faults()
    torch.ones(16 << 20)
print(faults() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc")
def test_a_process_that_keeps_its_memory_comes_to_make_large_tensors_without_page_faults() -> None:
    def faults(keep: bool) -> int:
        words = [sys.executable, "-c", PROGRAM.format(keep=keep)]
        return int(subprocess.run(words, check=True, capture_output=True, text=True).stdout)

    # 64 MiB are 16,384 pages of 4 KiB, or 32 large ones.
    assert faults(keep=True) < 8 < faults(keep=False)
