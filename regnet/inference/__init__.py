"""Register two images with a trained network, by optimising the pair itself, or both."""

from regnet.inference.load import LoadedModel, load_model
from regnet.inference.register import register

__all__ = ["LoadedModel", "load_model", "register"]
