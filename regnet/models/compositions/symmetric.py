"""Symmetric: exchanging the images inverts the map, by construction."""

from torch import Tensor, nn

from regnet.models.heads.field import FieldLayer
from regnet.models.registration import Registration


class Symmetric(Registration):
    """A registration whose features change their sign when the images are exchanged.

    So does the velocity, and the exponential of minus a velocity is the inverse map: both orders of the images give one
    map and its inverse, whatever the weights. The network runs twice.

    Args:
        network: see ``regnet.models.Network``.
        head: one that gives the inverse (``inverse: true``): velocity, spline_velocity or affine. Its last convolution
            loses its bias, which would not change sign.

    Raises:
        ValueError: the head gives no inverse, or is probabilistic: a variance does not change its sign.

    Source:
        Antisymmetrised velocities: Iglesias, Scientific Reports 2023 (EasyReg); Greer et al., MICCAI 2023 (ConstrICON).
    """

    def __init__(self, network: nn.Module, head: nn.Module) -> None:
        super().__init__(network, head)
        if not getattr(head, "inverse", False):
            raise ValueError(
                "a symmetric registration needs a head that gives the inverse: velocity, spline_velocity or affine, "
                f"with inverse=true; got {type(head).__name__}"
            )
        if self.probabilistic:
            raise ValueError("a symmetric registration cannot draw: take a velocity head")
        for layer in head.modules():
            if isinstance(layer, FieldLayer):
                layer.convolution.register_parameter("bias", None)

    def features(self, moving: Tensor, fixed: Tensor, regularity: Tensor | None = None) -> Tensor:
        """What the network says of the pair, minus what it says of the pair exchanged."""
        return super().features(moving, fixed, regularity) - super().features(fixed, moving, regularity)
