"""The terms that keep a field smooth, dense or given by B-spline control points."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from regnet.losses.regularity import bending_energy, diffusion, elastic, total_variation
from regnet.losses.spline import spline_bending_energy, spline_diffusion
from regnet.losses.term import FieldTerm, Tensors, find


def _of_control(term: FieldTerm, energy: Callable[..., Tensor], outputs: Tensors, batch: Tensors) -> Tensor:
    control, spacing = find(term, outputs, "control"), find(term, outputs, "control_spacing")
    return energy(control, batch["fixed"].shape[2:], spacing.tolist(), term.spacing(batch))


class Smoothness(FieldTerm):
    """What makes a field smooth: of a conditional model it counts with the weight that the model was told, too."""

    regular = True


class Diffusion(Smoothness):
    """:func:`diffusion` of a dense field, :func:`spline_diffusion` of control points."""

    choices = ("field", "velocity", "displacement", "control")
    unit = "none: mm per mm"

    def __init__(self, norm: str = "l2", **common: Any) -> None:
        super().__init__(**common)
        self.norm = norm

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        if self.on == "control":
            return _of_control(self, spline_diffusion, outputs, batch)
        return diffusion(*self.field(outputs, batch), norm=self.norm)


class TotalVariation(Smoothness):
    """:func:`total_variation` of the velocity or the displacement."""

    unit = "none: mm per mm"

    def __init__(self, smooth: float = 1e-3, **common: Any) -> None:
        super().__init__(**common)
        self.smooth = smooth

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        return total_variation(*self.field(outputs, batch), smooth=self.smooth)


class BendingEnergy(Smoothness):
    """:func:`bending_energy` of a dense field, :func:`spline_bending_energy` of control points."""

    choices = ("field", "velocity", "displacement", "control")
    unit = "1/mm²"

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        if self.on == "control":
            return _of_control(self, spline_bending_energy, outputs, batch)
        return bending_energy(*self.field(outputs, batch))


class Elastic(Smoothness):
    """:func:`elastic` energy of the velocity or the displacement."""

    unit = "none: mm per mm"

    def __init__(self, mu: float = 1.0, lam: float = 0.0, **common: Any) -> None:
        super().__init__(**common)
        self.mu = mu
        self.lam = lam

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        return elastic(*self.field(outputs, batch), mu=self.mu, lam=self.lam)
