"""The one kind of convolution that the models use, in any dimension."""

from torch import nn


def convolution(ndim: int, in_channels: int, out_channels: int, stride: int = 1) -> nn.Conv1d | nn.Conv2d | nn.Conv3d:
    """Convolution of 3 nodes per axis that keeps the size (``ceil(n / stride)``).

    Raises:
        ValueError: ``ndim`` is not 1, 2 or 3.
    """
    kinds: dict[int, type[nn.Conv1d] | type[nn.Conv2d] | type[nn.Conv3d]] = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
    if ndim not in kinds:
        raise ValueError(f"ndim must be 1, 2 or 3, got {ndim}")
    return kinds[ndim](in_channels, out_channels, kernel_size=3, stride=stride, padding=1)
