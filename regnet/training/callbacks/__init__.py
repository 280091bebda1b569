"""Callbacks that regnet adds to Lightning's."""

from regnet.training.callbacks.checkpoint import Checkpoint
from regnet.training.callbacks.cost import Cost
from regnet.training.callbacks.panels import Panels
from regnet.training.callbacks.progress import Progress

__all__ = ["Checkpoint", "Cost", "Panels", "Progress"]
