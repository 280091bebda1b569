"""Instance optimisation: fit the transform, or a copy of the network, to one pair."""

from regnet.inference.refine.descent import Progress
from regnet.inference.refine.finetune import finetune
from regnet.inference.refine.pair import refine

__all__ = ["Progress", "finetune", "refine"]
