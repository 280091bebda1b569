"""The one kind of convolution that the models use, in any dimension."""

from torch import nn

Convolution = nn.Conv1d | nn.Conv2d | nn.Conv3d


def convolution(ndim: int, in_channels: int, out_channels: int, stride: int = 1, kernel: int = 3) -> Convolution:
    """Convolution of ``kernel`` nodes per axis (odd) that keeps the size (``ceil(n / stride)``).

    Node ``k`` of its output looks around node ``k * stride`` of its input.

    Raises:
        ValueError: ``ndim`` is not 1, 2 or 3, or ``kernel`` is even.
    """
    kinds: dict[int, type[nn.Conv1d] | type[nn.Conv2d] | type[nn.Conv3d]] = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
    if ndim not in kinds:
        raise ValueError(f"ndim must be 1, 2 or 3, got {ndim}")
    if kernel % 2 == 0:
        raise ValueError(f"a kernel needs a middle: its size must be odd, got {kernel}")
    return kinds[ndim](in_channels, out_channels, kernel_size=kernel, stride=stride, padding=kernel // 2)
