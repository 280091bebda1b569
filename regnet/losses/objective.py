"""The weighted sum of loss terms."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from regnet.losses.views import coarser, reversed_view


class Objective(nn.Module):
    """What training and refinement minimise: the sum of ``term.weight * term(outputs, batch)``.

    A term with a ``level`` sees the pair on a grid halved so often; one with ``both_directions`` counts with the mean
    of its values from fixed to moving and back. Of a conditional model, the terms that make a field smooth also count
    with the weight that the model was told (``outputs["regularity"]``, the mean over the batch).

    Args:
        terms: name -> module called as ``term(outputs, batch)`` and returning a 0-d value; ``term.weight``, 1 where it
            has none, is its share. A term that is None is left out, so that a config can switch one off.

    Raises:
        ValueError: no term is left, one is not a module, or has a name that torch uses itself.
    """

    def __init__(self, terms: Mapping[str, nn.Module | None]) -> None:
        super().__init__()
        kept = {name: term for name, term in terms.items() if term is not None}
        for name, term in kept.items():
            if hasattr(nn.ModuleDict, name) or "." in name:
                raise ValueError(f"a loss term cannot be called {name!r}: torch uses that name; take another")
            if not isinstance(term, nn.Module):
                raise ValueError(f"loss term {name!r} must be an nn.Module: got {type(term).__name__}")
        if not kept:
            raise ValueError("an objective needs at least one loss term: got none")
        self.terms = nn.ModuleDict(kept)

    def forward(self, outputs: Mapping[str, Tensor], batch: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """The total, and each term's value before its weight.

        Raises:
            ValueError: the model was told how regular to be, and no term makes a field smooth.
        """
        if "regularity" in outputs and not any(getattr(term, "regular", False) for term in self.terms.values()):
            raise ValueError(
                "a conditional model needs a term that makes a field smooth, such as Diffusion: got "
                + ", ".join(self.terms)
            )
        views: dict[tuple[int, bool], Any] = {(0, False): (outputs, batch)}

        def view(level: int, back: bool) -> Any:
            """Made once for all terms."""
            if (level, back) not in views:
                fine = view(0, back) if level else (outputs, batch)
                views[level, back] = coarser(fine[0], fine[1], level) if level else reversed_view(outputs, batch)
            return views[level, back]

        values = {}
        for name, term in self.terms.items():
            level = getattr(term, "level", 0)
            values[name] = term(*view(level, False))
            if getattr(term, "both_directions", False):
                values[name] = (values[name] + term(*view(level, True))) / 2
        weighted = list(self.weighted(values, outputs).values())
        total = weighted[0]
        for value in weighted[1:]:
            total = total + value
        return total, values

    def weighted(self, values: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What each raw value adds to the total."""
        weights: dict[str, Any] = {name: getattr(self.terms[name], "weight", 1.0) for name in values}
        if "regularity" in outputs:
            told = outputs["regularity"].mean()
            weights |= {name: told * weights[name] for name in weights if getattr(self.terms[name], "regular", False)}
        return {name: weights[name] * value for name, value in values.items()}

    def wants_swap(self, outputs: Mapping[str, Tensor]) -> bool:
        """Whether a term needs the model's answer with moving and fixed exchanged, ``swapped_displacement``."""
        back = "inverse_displacement" in outputs or "velocity" in outputs
        terms = self.terms.values()
        return any(getattr(t, "swaps", False) or (getattr(t, "both_directions", False) and not back) for t in terms)

    def describe(self) -> list[str]:
        """One line a term: its name, its settings, and the unit of its value."""
        return [f"{name}: {term} [{getattr(term, 'unit', '') or 'no unit'}]" for name, term in self.terms.items()]
