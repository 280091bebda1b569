"""Models: networks, heads, and the registration that joins them."""

from regnet.models.heads import DisplacementHead, VelocityHead
from regnet.models.networks import UNet
from regnet.models.registration import Network, Registration
from regnet.models.registry import build, describe

__all__ = ["DisplacementHead", "Network", "Registration", "UNet", "VelocityHead", "build", "describe"]
