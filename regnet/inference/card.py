"""A model card to be completed: what a model file itself knows, and questions for whom trained it."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from regnet.data.spec import InputSpec

_ASKED = (
    "Trained on (subjects, scanners, consent)",
    "Meant for, and not meant for",
    "Known to fail on",
    "Licence of the weights",
    "Cite",
)


def card(about: Mapping[str, Any], weights: Mapping[str, Tensor], sha256: str) -> str:
    """The card as Markdown.

    Args:
        about, weights: as ``describe_model`` gives them.
        sha256: of the model file.
    """
    model, measured = about["model"], about.get("metrics", {})
    parts = [model, *(model[part] for part in ("network", "head") if isinstance(model.get(part), Mapping))]
    rows = {
        "network": ", ".join(str(part["_target_"]) for part in parts),
        "numbers": f"{sum(value.numel() for value in weights.values()):,}",
        "regnet": about["regnet"],
        "sha256": sha256,
    }
    sections = {
        "Input": [f"- {name}: {value}" for name, value in InputSpec.from_dict(about["spec"]).to_dict().items()],
        "Validation": [f"- {name}: {value:.4g}" for name, value in measured.items()] or ["Not known."],
        "To be filled in": [f"- {question}:" for question in _ASKED],
    }
    lines = ["# Model card", "", "| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())]
    for title, found in sections.items():
        lines += ["", f"## {title}", "", *found]
    return "\n".join(lines) + "\n"
