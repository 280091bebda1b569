"""Volumes small enough to go into a page: NIfTI, a byte a voxel, packed, in base64."""

import base64
import gzip
import tempfile
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from regnet.io import write_image
from regnet.spatial import Grid

_VOXELS = 1_100_000  # at most: a head at 2 mm


def packed_volume(volume: Tensor, grid: Grid, window: tuple[float, float], levels: int = 256) -> str:
    """A volume whose bytes 0 and 255 are the ends of a window; coarser than the image where that is large.

    Args:
        volume: ``(*grid.shape)``, 3-D.
        grid: where it lies.
        window: the values that become 0 and 255; beyond them it stays so.
        levels: how many values there are in between: fewer pack better.
    """
    factor = max(1.0, (grid.voxels / _VOXELS) ** (1 / 3))
    coarse = grid.with_shape([max(1, int(n / factor)) for n in grid.shape])
    values = interpolate(volume[None, None].float(), size=coarse.shape, mode="area")[0, 0]
    low, high = window
    steps = ((values - low) / max(high - low, 1e-12)).clamp(0, 1).mul(levels - 1).round()
    data = (steps * (255 / (levels - 1))).round().to(torch.uint8)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "volume.nii"
        write_image(path, data, coarse)
        return base64.b64encode(gzip.compress(path.read_bytes(), mtime=0)).decode()
