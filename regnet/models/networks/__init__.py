"""Networks: two images in, features out."""

from regnet.models.networks.conditional import ConditionalUNet
from regnet.models.networks.cost_volume import CostVolumeNet
from regnet.models.networks.dual_stream import DualStreamUNet
from regnet.models.networks.large_kernel import LargeKernelUNet
from regnet.models.networks.unet import UNet

__all__ = ["ConditionalUNet", "CostVolumeNet", "DualStreamUNet", "LargeKernelUNet", "UNet"]
