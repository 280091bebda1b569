"""The terms that compare the labels of the moving image, warped, with those of the fixed image."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from regnet.losses.term import Tensors, Term, find, supplied
from regnet.losses.warped_labels import warped_cross_entropy, warped_dice


class _LabelTerm(Term):
    choices = ("labels",)

    def __init__(self, labels: Sequence[int] | None = None, **common: Any) -> None:
        super().__init__(**common)
        self.labels = labels

    def arguments(self, outputs: Tensors, batch: Tensors) -> tuple[Tensor, Tensor, Tensor, Sequence[int] | None]:
        maps = supplied(self, batch, "moving_labels"), supplied(self, batch, "fixed_labels")
        return *maps, find(self, outputs, "displacement"), self.labels


class SoftDice(_LabelTerm):
    """:func:`warped_dice` of the batch's labels; ``labels``: which, None for those of the fixed image without 0."""

    def __init__(self, denominator: str = "squares", **common: Any) -> None:
        super().__init__(**common)
        self.denominator = denominator

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        return warped_dice(*self.arguments(outputs, batch), batch.get("fixed_mask"), self.denominator)


class CrossEntropy(_LabelTerm):
    """:func:`warped_cross_entropy` of the batch's labels; ``labels`` as in :class:`SoftDice`."""

    unit = "nats"

    def __init__(self, smooth: float = 0.01, **common: Any) -> None:
        super().__init__(**common)
        self.smooth = smooth

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        return warped_cross_entropy(*self.arguments(outputs, batch), batch.get("fixed_mask"), self.smooth)
