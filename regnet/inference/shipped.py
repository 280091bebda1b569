"""The network that comes with regnet: docs/model_card.md says what it saw and what it is good for."""

from pathlib import Path

from regnet.io.image import Image

RECIPE = "shipped"  # the file of configs/experiment that says what it is


def shipped_model() -> Path:
    """Path of its model file, for :func:`regnet.inference.load_model` and whatever takes a model."""
    return Path(__file__).parent / "shipped.safetensors"


def takes(image: Image) -> bool:
    """Whether it can be asked about such an image: a volume of one channel."""
    return image.grid.ndim == 3 and image.data.shape[0] == 1
