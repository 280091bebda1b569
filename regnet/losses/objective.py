"""The weighted sum of loss terms."""

from collections.abc import Mapping

from torch import Tensor, nn


class Objective(nn.Module):
    """What training and refinement minimise: the sum of ``term.weight * term(outputs, batch)``.

    Args:
        terms: name -> module called as ``term(outputs, batch)`` and returning a 0-d value; ``term.weight``, 1 where it
            has none, is its share. A term that is None is left out, so that a config can switch one off.

    Raises:
        ValueError: no term is left, or one is not a module.
    """

    def __init__(self, terms: Mapping[str, nn.Module | None]) -> None:
        super().__init__()
        kept = {name: term for name, term in terms.items() if term is not None}
        for name, term in kept.items():
            if not isinstance(term, nn.Module):
                raise ValueError(f"loss term {name!r} must be an nn.Module: got {type(term).__name__}")
        if not kept:
            raise ValueError("an objective needs at least one loss term: got none")
        self.terms = nn.ModuleDict(kept)

    def forward(self, outputs: Mapping[str, Tensor], batch: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """The total, and each term's value before its weight."""
        values = {name: term(outputs, batch) for name, term in self.terms.items()}
        weighted = [getattr(self.terms[name], "weight", 1.0) * value for name, value in values.items()]
        total = weighted[0]
        for value in weighted[1:]:
            total = total + value
        return total, values
