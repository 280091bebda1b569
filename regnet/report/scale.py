"""Colours for numbers."""

from dataclasses import dataclass, field

import numpy as np
from matplotlib import colormaps

_STEPS = 64  # more are not seen, and take more room


@dataclass(frozen=True)
class Scale:
    """Values from ``low`` to ``high`` in steps of colour.

    Attributes:
        low, high: values of the first and last colour; beyond them it stays so.
        colours: ``(steps, 3)``, uint8; where there is one more, it is that of ``low`` and less.
    """

    low: float
    high: float
    colours: np.ndarray = field(repr=False)

    def steps(self, values: np.ndarray) -> np.ndarray:
        """The colour of each value, as an index."""
        place = (values - self.low) / max(self.high - self.low, 1e-12)
        index = np.floor(place * _STEPS).clip(0, _STEPS - 1)
        return np.where(values <= self.low, _STEPS, index) if len(self.colours) > _STEPS else index

    def css(self) -> str:
        """The scale from left to right, as a CSS image."""
        shown = self.colours[:_STEPS][:: _STEPS // 8]
        return f"linear-gradient(90deg,{','.join('#' + bytes(colour).hex() for colour in shown)})"


def determinants() -> Scale:
    """Blue 0, white 1, red 2 and more; what folds (0 and less) is yellow."""
    colours = _colours("bwr")
    return Scale(0.0, 2.0, np.concatenate([colours, np.array([[255, 214, 0]], dtype=np.uint8)]))


def lengths(most: float) -> Scale:
    """From dark (0) to bright."""
    return Scale(0.0, most if most > 0 else 1.0, _colours("magma"))


def _colours(name: str) -> np.ndarray:
    return (colormaps[name](np.linspace(0, 1, _STEPS))[:, :3] * 255).round().astype(np.uint8)
