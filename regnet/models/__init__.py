"""Models: networks, heads, and what joins them."""

from regnet.models.compositions import Cascade, Pyramid, Symmetric
from regnet.models.heads import (
    AffineHead,
    DisplacementHead,
    ProbabilisticVelocityHead,
    SplineHead,
    SplineVelocityHead,
    VelocityHead,
)
from regnet.models.model import Model
from regnet.models.networks import ConditionalUNet, CostVolumeNet, DualStreamUNet, LargeKernelUNet, UNet
from regnet.models.registration import Network, Registration
from regnet.models.registry import build, describe

__all__ = [
    "AffineHead",
    "Cascade",
    "ConditionalUNet",
    "CostVolumeNet",
    "DisplacementHead",
    "DualStreamUNet",
    "LargeKernelUNet",
    "Model",
    "Network",
    "ProbabilisticVelocityHead",
    "Pyramid",
    "Registration",
    "SplineHead",
    "SplineVelocityHead",
    "Symmetric",
    "UNet",
    "VelocityHead",
    "build",
    "describe",
]
