"""How large a level may be for the memory there is."""

import os

import torch

# Numbers of 4 bytes that a step keeps at once, per voxel: of the fields, and of each channel's similarity.
_OF_FIELDS = 20
_OF_CHANNEL = 25
# What of the free memory a level may take.
_SHARE = 0.5
_UNKNOWN = 2**33


def voxels_that_fit(channels: int, ndim: int, device: torch.device | str = "cpu") -> int:
    """Voxels of a level that is optimised in the memory that is free now."""
    each = 4 * (_OF_FIELDS * ndim + _OF_CHANNEL * channels)
    return max(1, int(_SHARE * _free(torch.device(device)) / each))


def _free(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not every system tells
        return _UNKNOWN
