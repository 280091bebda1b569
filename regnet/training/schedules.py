"""Learning-rate schedules made of others."""

from collections.abc import Callable, Mapping

from torch.optim import Optimizer
from torch.optim.lr_scheduler import ChainedScheduler, LRScheduler


def product(optimizer: Optimizer, factors: Mapping[str, Callable[[Optimizer], LRScheduler]]) -> ChainedScheduler:
    """The product of several schedules, such as a warm-up and a cosine.

    Args:
        optimizer: whose learning rate it sets.
        factors: name (which does not matter) -> what makes a schedule of the optimiser. They must be of the kind that
            multiplies the present rate: ``LinearLR``, ``CosineAnnealingLR``, ``PolynomialLR``, ``ExponentialLR``, ...
    """
    return ChainedScheduler([make(optimizer) for make in factors.values()], optimizer)
