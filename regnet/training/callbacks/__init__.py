"""Callbacks that regnet adds to Lightning's."""

from regnet.training.callbacks.advice import Advice
from regnet.training.callbacks.artefacts import Artefacts
from regnet.training.callbacks.checkpoint import Checkpoint
from regnet.training.callbacks.cost import Cost
from regnet.training.callbacks.ema import EMA
from regnet.training.callbacks.interruption import Interruption
from regnet.training.callbacks.panels import Panels
from regnet.training.callbacks.progress import Progress
from regnet.training.callbacks.pruning import Pruning
from regnet.training.callbacks.timing import Timing

__all__ = [
    "EMA",
    "Advice",
    "Artefacts",
    "Checkpoint",
    "Cost",
    "Interruption",
    "Panels",
    "Progress",
    "Pruning",
    "Timing",
]
