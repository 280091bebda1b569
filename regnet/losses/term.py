"""What every loss term has in common, and what it finds in a model's outputs and in a batch.

``outputs``: ``displacement`` ``(N, D, *spatial)``, voxels, fixed to moving; ``moved`` ``(N, C, *spatial)``;
``moved_view`` ``(N, 1, *spatial)``, 1 where the moving image was in view. Some models add ``velocity``
``(N, D, *any)``, ``control`` ``(N, D, *points)`` with ``control_spacing`` ``(D,)`` in voxels,
``inverse_displacement``, ``mean`` and ``log_variance``, or the ``regularity`` ``(N,)`` that they were told.

``batch``: ``fixed``, ``moving``, ``spacing`` ``(N, D)`` in mm of the fixed grid; and where known ``fixed_mask``
``(N, 1, *spatial)``, ``moving_labels``, ``fixed_labels`` ``(N, 1, *spatial)``, ``moving_points``, ``fixed_points``
``(N, K, D)``, and the true ``flow`` ``(N, D, *spatial)`` in voxels, NaN where nobody knows it.
"""

import math
from collections.abc import Mapping
from inspect import Parameter, Signature, signature
from typing import Any, ClassVar

from torch import Tensor, nn

Tensors = Mapping[str, Tensor]


class Term(nn.Module):
    """A loss term; what it computes is a pure function of the same file.

    ``weight``, ``level`` and ``both_directions`` tell the :class:`~regnet.losses.Objective` what to do with the term:
    called alone, a term gives its own value at full resolution. A subclass with settings of its own takes them by name,
    keeps them under that name, and hands the rest on: ``def __init__(self, window=9, **common)``.

    Args:
        weight: what the objective multiplies the term's value with.
        on: what the term looks at; one of ``choices``, by default the first.
        level: how often the grid is halved before the term looks.
        both_directions: the mean over both directions, the second with moving and fixed exchanged.
    """

    choices: tuple[str, ...] = ("image",)
    unit = ""  # of the value; printed when a training starts
    swaps = False  # whether it needs ``swapped_displacement``
    regular = False  # whether the weight that a conditional model is told multiplies its own
    __signature__: ClassVar[Signature]

    def __init_subclass__(cls) -> None:
        """Spell out what ``**common`` stands for, so that a configuration is checked key by key."""
        told: dict[str, Parameter] = {}
        for kind in cls.__mro__[: cls.__mro__.index(Term) + 1]:
            if "__init__" in vars(kind):
                own = list(signature(vars(kind)["__init__"]).parameters.values())[1:]
                told = {p.name: p for p in own if p.kind is not p.VAR_KEYWORD} | told
                if not any(p.kind is p.VAR_KEYWORD for p in own):
                    break
        cls.__signature__ = Signature([p.replace(kind=p.KEYWORD_ONLY) for p in told.values()])

    def __init__(self, *, weight: float = 1.0, on: str = "", level: int = 0, both_directions: bool = False) -> None:
        super().__init__()
        name = type(self).__name__
        on = on or self.choices[0]
        if on not in self.choices:
            raise ValueError(f"{name}: on must be one of {', '.join(self.choices)}: got {on!r}")
        if level < 0 or (level and on in ("points", "control")):
            raise ValueError(f"{name}: level is a number of halvings, 0 for points and control: got {level}")
        if isinstance(weight, str) or not math.isfinite(weight):
            raise ValueError(f"{name}: weight must be a finite number: got {weight!r}")
        self.weight = float(weight)
        self.on = on
        self.level = level
        self.both_directions = both_directions

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        """The term's value, before its weight; 0-d."""
        raise NotImplementedError

    def extra_repr(self) -> str:
        """Weight, what it is on, and every other setting that is not the default."""
        told = [p for p in self.__signature__.parameters.values() if getattr(self, p.name) != p.default]
        names = dict.fromkeys(["weight", "on", *(p.name for p in told)])
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)


class ImageTerm(Term):
    """A term that compares the moved with the fixed image, in the moving image's view and the fixed mask."""

    def images(self, outputs: Tensors, batch: Tensors) -> tuple[Tensor, Tensor, Tensor | None]:
        """Moved, fixed, and the weight of each voxel."""
        view, mask = outputs.get("moved_view"), batch.get("fixed_mask")
        if view is None or mask is None:
            return outputs["moved"], batch["fixed"], mask if view is None else view
        return outputs["moved"], batch["fixed"], view * mask


class FieldTerm(Term):
    """A term on a field, by default the velocity, or the displacement of a model without one; it may be coarse.

    Args:
        units: "mm", or "voxels" of the field's grid, as published recipes have it.
        common: as of :class:`Term`.
    """

    choices: tuple[str, ...] = ("field", "velocity", "displacement")

    def __init__(self, units: str = "mm", **common: Any) -> None:
        super().__init__(**common)
        if units not in ("mm", "voxels"):
            raise ValueError(f"{type(self).__name__}: units must be mm or voxels: got {units!r}")
        self.units = units
        self.unit = self.unit.replace("mm", units)

    def field(self, outputs: Tensors, batch: Tensors) -> tuple[Tensor, Tensor | float]:
        """The field, and the size of its voxels in mm, ``(N, D)`` (1 where the batch does not say)."""
        either = "velocity" if "velocity" in outputs else "displacement"
        flow, size = find(self, outputs, either if self.on == "field" else self.on), self.spacing(batch)
        if isinstance(size, float):
            return flow, size
        ratio = [fixed / own for fixed, own in zip(batch["fixed"].shape[2:], flow.shape[2:], strict=True)]
        return flow, size * size.new_tensor(ratio)

    def spacing(self, batch: Tensors) -> Tensor | float:
        """Size of the fixed image's voxels, 1 where voxels are asked for."""
        return 1.0 if self.units == "voxels" else batch.get("spacing", 1.0)


def find(term: Term, outputs: Tensors, key: str) -> Tensor:
    """An output of the model, or the line that says what there is."""
    if key not in outputs:
        found = ", ".join(sorted(outputs))
        raise ValueError(f"{type(term).__name__}: the model has no {key!r} output, only {found}: change its `on`")
    return outputs[key]


def supplied(term: Term, batch: Tensors, key: str) -> Tensor:
    """A tensor of the batch, or the line that says how to get it."""
    if key not in batch:
        raise ValueError(
            f"{type(term).__name__} needs {key!r} in the batch: give the table such a column, or drop the term"
        )
    return batch[key]
