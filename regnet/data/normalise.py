"""Intensities: from what a scanner stored to what a network sees."""

import numpy as np
import torch
from torch import Tensor

from regnet.data.spec import InputSpec

_MODE_SHARE = 0.1  # a value that fills this share of an image and is a low one is its background
_MODE_SAMPLES = 200_000  # voxels looked at to find it
_FLOOR = 0.05  # of the range: foreground begins here
_TOP = 99.5  # percentile of the foreground that becomes 1


def normalise(data: Tensor, spec: InputSpec) -> Tensor:
    """Normalise an image, each channel by itself, on its own voxels (before any resampling).

    The ``percentile`` rule sees only ranks and the spread between two of them, so a stored type, slope and intercept
    make no difference.

    Args:
        data: ``(C, *spatial)``, finite and not constant.
        spec: says how (``normalisation``, ``background``).

    Returns:
        ``(C, *spatial)`` float32.
    """
    if spec.normalisation == "none":
        return data.to(torch.float32)
    if spec.normalisation.startswith("window"):
        low, high = spec.window()
        return ((data.to(torch.float32) - low) / (high - low)).clamp_(0, 1)
    channels = data.to(torch.float32)
    if spec.normalisation == "percentile":
        return torch.stack([_percentile(channel) for channel in channels])
    return torch.stack([_zscore(channel, spec.background) for channel in channels])


def _percentile(channel: Tensor) -> Tensor:
    level, top, _ = _levels(channel)
    return ((channel - level) / (top - level)).clamp_(0, 1)


def _zscore(channel: Tensor, background: float) -> Tensor:
    _, _, inside = _levels(channel)
    values = channel[inside].double()
    deviation = float(values.std(correction=0)) or 1.0  # one grey value on a background: only centred
    return torch.where(inside, (channel - float(values.mean())) / deviation, torch.tensor(background))


def _levels(channel: Tensor) -> tuple[float, float, Tensor]:
    """Background level, robust maximum of the foreground, and the foreground."""
    values = channel.numpy(force=True).ravel()
    low, high = np.percentile(values, (0.5, 99.9))
    level = _mode(values)
    if level is None or level >= high:
        level = float(low)
    if high <= level:  # less than a thousandth of the image stands out
        high = values.max()
    if high <= level:  # or it stands out downwards only
        level = float(values.min())
    foreground = channel > level + _FLOOR * (high - level)
    top = float(np.percentile(channel[foreground].numpy(force=True), _TOP))
    return level, top, foreground


def _mode(values: np.ndarray) -> float | None:
    """The low value that fills at least a tenth of an image (a stripped or padded background), if there is one."""
    few = values
    if values.size > _MODE_SAMPLES:  # not every n-th: a step may fall in with the rows and see a few planes only
        few = values[np.random.default_rng(0).integers(values.size, size=_MODE_SAMPLES)]
    levels, counts = np.unique(few[few <= few.mean(dtype=np.float64)], return_counts=True)
    most = int(counts.argmax())
    return float(levels[most]) if counts[most] >= _MODE_SHARE * few.size else None
