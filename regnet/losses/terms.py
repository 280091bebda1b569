"""The losses as modules: each reads what it needs from the model's outputs and the batch.

``outputs``: ``displacement`` ``(N, D, *spatial)`` in voxels, ``velocity`` if the head has one, ``moved``
``(N, C, *spatial)`` and ``moved_view`` ``(N, 1, *spatial)``, 1 where the moving image was in view.
``batch``: ``fixed``, ``moving``, ``spacing`` ``(N, D)`` in mm of the fixed grid, and labels where a term needs them.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from regnet import ops
from regnet.losses.overlap import soft_dice
from regnet.losses.regularity import bending_energy, diffusion
from regnet.losses.similarity import lncc, mse

Tensors = Mapping[str, Tensor]


class Term(nn.Module):
    """A loss term.

    Args:
        weight: what the objective multiplies the term's value with.
        on: what the term looks at; one of ``choices``.
    """

    choices: tuple[str, ...] = ()

    def __init__(self, weight: float = 1.0, on: str = "") -> None:
        super().__init__()
        if on not in self.choices:
            raise ValueError(f"{type(self).__name__}: on must be one of {', '.join(self.choices)}: got {on!r}")
        self.weight = float(weight)
        self.on = on

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        """The term's value, before its weight; 0-d."""
        raise NotImplementedError

    def extra_repr(self) -> str:
        return f"weight={self.weight:g}, on={self.on!r}"


class LNCC(Term):
    """:func:`regnet.losses.lncc` of the moved and the fixed image, in the moving image's view."""

    choices = ("image",)

    def __init__(self, window: int | Sequence[int] = 9, weight: float = 1.0, on: str = "image") -> None:
        super().__init__(weight, on)
        self.window = window if isinstance(window, int) else tuple(window)

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        return lncc(outputs["moved"], batch["fixed"], self.window, outputs.get("moved_view"))

    def extra_repr(self) -> str:
        return f"window={self.window}, {super().extra_repr()}"


class MSE(Term):
    """:func:`regnet.losses.mse` of the moved and the fixed image, in the moving image's view."""

    choices = ("image",)

    def __init__(self, weight: float = 1.0, on: str = "image") -> None:
        super().__init__(weight, on)

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        return mse(outputs["moved"], batch["fixed"], outputs.get("moved_view"))


class _Regularity(Term):
    """A term on a field, which may be coarser than the images."""

    choices = ("velocity", "displacement")

    def __init__(self, weight: float = 1.0, on: str = "velocity") -> None:
        super().__init__(weight, on)

    def field(self, outputs: Tensors, batch: Tensors) -> tuple[Tensor, Tensor | float]:
        """The field, and the size of its voxels in mm (1 where the batch does not say)."""
        if self.on not in outputs:
            found = ", ".join(sorted(outputs))
            raise ValueError(
                f"{type(self).__name__}: the model has no {self.on!r} output, only {found}: change its `on`"
            )
        flow = outputs[self.on]
        if "spacing" not in batch:
            return flow, 1.0
        ratio = [fixed / own for fixed, own in zip(batch["fixed"].shape[2:], flow.shape[2:], strict=True)]
        return flow, batch["spacing"] * batch["spacing"].new_tensor(ratio)


class Diffusion(_Regularity):
    """:func:`regnet.losses.diffusion` of the velocity or the displacement."""

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        return diffusion(*self.field(outputs, batch))


class BendingEnergy(_Regularity):
    """:func:`regnet.losses.bending_energy` of the velocity or the displacement."""

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        return bending_energy(*self.field(outputs, batch))


class SoftDice(Term):
    """:func:`regnet.losses.soft_dice` of the labels, the moving ones warped as linear one-hot maps.

    Args:
        labels: which to compare; None takes those of the batch's fixed labels, without 0.
    """

    choices = ("labels",)

    def __init__(self, weight: float = 1.0, on: str = "labels", labels: Sequence[int] | None = None) -> None:
        super().__init__(weight, on)
        self.labels = None if labels is None else [int(label) for label in labels]

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        for key in ("moving_labels", "fixed_labels"):
            if key not in batch:
                raise ValueError(f"SoftDice needs {key!r} in the batch: give the table label columns, or drop the term")
        flow, moving, fixed = outputs["displacement"], batch["moving_labels"], batch["fixed_labels"]
        labels = [label for label in fixed.unique().tolist() if label != 0] if self.labels is None else self.labels
        if not labels:
            return flow.sum() * 0
        values = torch.tensor(labels, device=fixed.device).view(1, -1, *[1] * (fixed.dim() - 2))
        one_hot = (moving == values).to(flow.dtype)
        moved = ops.warp(one_hot, flow, order=1, bound="replicate", extrapolate="edge")
        return soft_dice(moved, (fixed == values).to(flow.dtype))
