"""The one kind of convolution that the models use, in any dimension."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Convolution = nn.Conv1d | nn.Conv2d | nn.Conv3d

# torch hands a convolution of one float32 image to oneDNN only above so many numbers, the last axis not counted, and
# computes others in a way that is four times as slow in 3-D (`use_mkldnn` in its Convolution.cpp, 2.4 to 2.13).
_SMALL = 20480


def convolution(ndim: int, in_channels: int, out_channels: int, stride: int = 1, kernel: int = 3) -> Convolution:
    """Convolution of ``kernel`` nodes per axis (odd) that keeps the size (``ceil(n / stride)``).

    Node ``k`` of its output looks around node ``k * stride`` of its input.

    Raises:
        ValueError: ``ndim`` is not 1, 2 or 3, or ``kernel`` is even.
    """
    kinds: dict[int, type[nn.Conv1d] | type[nn.Conv2d] | type[nn.Conv3d]] = {1: nn.Conv1d, 2: nn.Conv2d, 3: _Conv3d}
    if ndim not in kinds:
        raise ValueError(f"ndim must be 1, 2 or 3, got {ndim}")
    if kernel % 2 == 0:
        raise ValueError(f"a kernel needs a middle: its size must be odd, got {kernel}")
    return kinds[ndim](in_channels, out_channels, kernel_size=kernel, stride=stride, padding=kernel // 2)


def convolve(features: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int = 1) -> Tensor:
    """As :func:`convolution`, with the weight given: ``(N, C, *spatial)`` and ``(out, C, *kernel)``."""
    ndim, padding = features.ndim - 2, weight.shape[-1] // 2
    nodes = -(-features.shape[2] // stride)
    if ndim < 3 or weight.shape[-1] != 3 or nodes < 2 or not _is_small(features):
        return (F.conv1d, F.conv2d, F.conv3d)[ndim - 1](features, weight, bias, stride, padding)
    # Two slabs of nodes that overlap, as a batch of two.
    half = (nodes + 1) // 2
    rows = stride * (half - 1) + 3
    padded = F.pad(features, (0, 0, 0, 0, 1, 1))
    slabs = torch.cat([padded.narrow(2, start, rows) for start in (0, stride * (nodes - half))])
    first, second = F.conv3d(slabs, weight, bias, stride, (0, 1, 1)).split(1)
    return torch.cat([first, second[:, :, 2 * half - nodes :]], dim=2)


def _is_small(features: Tensor) -> bool:
    """Whether torch, left alone, would take its slow way."""
    if torch.compiler.is_compiling() or not torch.backends.mkldnn.is_available() or torch.is_autocast_enabled("cpu"):
        return False
    alone = features.device.type == "cpu" and features.dtype == torch.float32 and len(features) == 1
    return alone and features.shape[1:-1].numel() <= _SMALL


class _Conv3d(nn.Conv3d):
    """With :func:`convolve`."""

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return convolve(input, weight, bias, self.stride[0])
