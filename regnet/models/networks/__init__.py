"""Networks: two images in, features out."""

from regnet.models.networks.unet import UNet

__all__ = ["UNet"]
