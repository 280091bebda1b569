"""Register two images with a trained network, by optimising the pair itself, or both."""

from regnet.inference.load import LoadedModel, load_model
from regnet.inference.register import check_device, check_pair, register

__all__ = ["LoadedModel", "check_device", "check_pair", "load_model", "register"]
