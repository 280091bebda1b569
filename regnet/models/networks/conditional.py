"""A U-Net that is told how regular the deformation shall be."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from regnet.models.networks.blocks import SLOPE
from regnet.models.networks.unet import UNet

WIDTH = 32


class ConditionalUNet(UNet):
    """U-Net whose features are scaled and shifted, channel by channel, by functions of the regularisation weight.

    Trained once with weights drawn from a range, it registers with any of them. A small network makes the scales and
    shifts of what each level of the encoder hands to the decoder, and of the last features; that is the convolutions
    behind them with other kernels and biases. There is no normalisation, whose statistics would change with how much
    background lies around a head.

    Args:
        regularity: least and greatest weight; ``forward`` takes the middle where it is told none.
        others: as ``UNet``.

    Raises:
        ValueError: as ``UNet``; or ``regularity`` is not a range of weights from 0 upwards.

    Source:
        A network conditional on the weight: Mok and Chung, MICCAI 2021 (there by instance normalisation); Hoopes et
        al., IPMI 2021 (HyperMorph, there all kernels are made). Scale and shift alone: Perez et al., AAAI 2018 (FiLM).
    """

    def __init__(
        self,
        ndim: int,
        in_channels: int = 2,
        encoder: Sequence[int] = (16, 32, 32, 32),
        decoder: Sequence[int] = (32, 32, 16),
        final: Sequence[int] = (),
        channels_last: bool = True,
        checkpointing: bool = False,
        regularity: Sequence[float] = (0.0, 1.0),
    ) -> None:
        super().__init__(ndim, in_channels, encoder, decoder, final, channels_last, checkpointing)
        if len(regularity) != 2 or not 0 <= regularity[0] < regularity[1]:
            raise ValueError(f"regularity must be two weights from 0 upwards, least first, got {list(regularity)}")
        self.regularity = (float(regularity[0]), float(regularity[1]))
        self.embedding = nn.Sequential(
            nn.Linear(1, WIDTH), nn.LeakyReLU(SLOPE), nn.Linear(WIDTH, WIDTH), nn.LeakyReLU(SLOPE)
        )
        handed = [self.streams * width for width in encoder[len(encoder) - 1 - len(decoder) :]]
        layers = [nn.Linear(WIDTH, 2 * width) for width in [*handed, self.out_channels]]
        for layer in layers:  # at first every weight is served alike
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
        self.modulations = nn.ModuleList(layers)

    def forward(self, moving: Tensor, fixed: Tensor, regularity: Tensor | None = None) -> Tensor:
        """Features as of ``UNet``, for the regularisation weights ``(N,)``.

        Raises:
            ValueError: as ``UNet``.
        """
        self.check(moving, fixed)
        least, most = self.regularity
        if regularity is None:
            regularity = moving.new_full((len(moving),), (least + most) / 2)
        code = self.embedding((2 * (regularity.to(moving) - least) / (most - least) - 1)[:, None])
        *modulations, last = self.modulations
        levels = self.encode(moving, fixed)[-len(modulations) :]
        told = [_modulate(level, layer(code)) for level, layer in zip(levels, modulations, strict=True)]
        return _modulate(self.decode(told), last(code))


def _modulate(features: Tensor, code: Tensor) -> Tensor:
    """``(1 + scale) * features + shift``; ``code`` ``(N, 2 C)`` holds scale and shift of each channel."""
    scale, shift = code.view(*code.shape, *[1] * (features.ndim - 2)).chunk(2, dim=1)
    return torch.addcmul(shift, features, 1 + scale)
