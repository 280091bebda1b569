"""Callbacks that regnet adds to Lightning's."""

from regnet.training.callbacks.checkpoint import Checkpoint
from regnet.training.callbacks.ema import EMA
from regnet.training.callbacks.interruption import Interruption
from regnet.training.callbacks.panels import Panels
from regnet.training.callbacks.progress import Progress

__all__ = ["EMA", "Checkpoint", "Interruption", "Panels", "Progress"]
