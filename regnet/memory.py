"""Freed memory that a process keeps for its next results."""

import ctypes

# The numbers of mallopt's parameters in glibc's malloc.h, and what they are set to.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
_MOST, _STEP, _LARGEST = 2**31 - 1, 2**26, 2**28


def keep_freed() -> None:
    """Let freed memory stay with this process: blocks of up to 256 MiB, and some 2 GiB in all.

    glibc gives a block of 32 MiB or more back to the system when it is freed, and the next one comes page by page,
    zeroed: on a CPU that can cost as much as computing what goes into it. This is for a process of one's own, such as
    the commands of regnet; a library should not decide it for others. Does nothing where there is no glibc.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST)
        mallopt(_TRIM_THRESHOLD, _MOST)
        mallopt(_TOP_PAD, _STEP)
