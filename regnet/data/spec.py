"""The input contract of a model: what an image must be made into before the network sees it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

NORMALISATIONS = ("percentile", "window LO HI", "zscore", "none")
SKULLS = ("stripped", "whole", "any")


@dataclass(frozen=True)
class InputSpec:
    """Input contract; it travels with the weights as plain values.

    Attributes:
        ndim: 2 or 3.
        channels: images per subject (files joined by ``;`` in a table).
        orientation: of the network's grid; ``RAS`` (2-D: its first two axes) is the only one so far.
        spacing: of the network's grid, mm; ``None``: the closest native spacing per axis.
        margin_mm: the fixed image's grid is cut to its foreground and this margin; ``None``: the whole field of view.
        normalisation: ``percentile``: background to 0, robust maximum of the foreground to 1, clipped;
            ``window LO HI``: this range to [0, 1], clipped; ``zscore``: mean 0, deviation 1 in the foreground,
            ``background`` elsewhere; ``none``.
        background: value of the prepared image outside the field of view.
        skull: ``stripped``, ``whole`` or ``any``: what the model was trained on.
        modality: what the model was trained on, in words.
        affine_first: whether the model expects an affine alignment to come first.

    Raises:
        ValueError: a value is none of the above.
    """

    ndim: int = 3
    channels: int = 1
    orientation: str = "RAS"
    spacing: float | None = 4.0
    margin_mm: float | None = 16.0
    normalisation: str = "percentile"
    background: float = 0.0
    skull: str = "stripped"
    modality: str = "T1"
    affine_first: bool = False

    def __post_init__(self) -> None:
        for name in ("spacing", "margin_mm"):
            if not isinstance(getattr(self, name), int | float | None):
                raise ValueError(f"input spec: {name} must be one number (mm) or None, got {getattr(self, name)!r}")
        if not isinstance(self.normalisation, str):
            raise ValueError(f"input spec: normalisation must be in words, got {self.normalisation!r}")
        if self.ndim not in (2, 3):
            raise ValueError(f"input spec: ndim must be 2 or 3, got {self.ndim!r}")
        if not isinstance(self.channels, int) or self.channels < 1:
            raise ValueError(f"input spec: channels must be an int of at least 1, got {self.channels!r}")
        if self.orientation != "RAS":
            raise ValueError(f"input spec: orientation must be 'RAS', got {self.orientation!r}")
        if self.spacing is not None and not self.spacing > 0:
            raise ValueError(f"input spec: spacing must be positive (mm) or None, got {self.spacing!r}")
        if self.margin_mm is not None and not self.margin_mm >= 0:
            raise ValueError(f"input spec: margin_mm must be at least 0 or None, got {self.margin_mm!r}")
        if self.skull not in SKULLS:
            raise ValueError(f"input spec: skull must be one of {', '.join(SKULLS)}, got {self.skull!r}")
        if self.normalisation.split(" ")[0] not in [rule.split(" ")[0] for rule in NORMALISATIONS]:
            raise ValueError(
                f"input spec: normalisation must be one of {', '.join(NORMALISATIONS)}, got {self.normalisation!r}"
            )
        if self.normalisation.startswith("window"):
            self.window()

    def window(self) -> tuple[float, float]:
        """Range of the ``window LO HI`` normalisation."""
        try:
            low, high = (float(word) for word in self.normalisation.split()[1:])
        except ValueError:
            low, high = 0.0, 0.0
        if not low < high:
            raise ValueError(f"input spec: normalisation 'window LO HI' needs LO < HI, got {self.normalisation!r}")
        return low, high

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as a checkpoint stores them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "InputSpec":
        """Inverse of :meth:`to_dict`; missing keys take their defaults.

        Raises:
            ValueError: a key is unknown (the file may come from a newer regnet).
        """
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise ValueError(f"input spec: unknown {', '.join(unknown)}; known are {', '.join(known)}")
        return cls(**values)
