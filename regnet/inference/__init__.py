"""Register two images with a trained network, by optimising the pair itself, or both."""

from regnet.inference.load import LoadedModel, load_model
from regnet.inference.preflight import check_pair
from regnet.inference.register import check_device, find, register
from regnet.inference.result import Result
from regnet.inference.shipped import shipped_model

__all__ = ["LoadedModel", "Result", "check_device", "check_pair", "find", "load_model", "register", "shipped_model"]
