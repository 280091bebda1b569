"""The figures of a pair, before and after, as tables."""

import math
from collections.abc import Mapping
from html import escape

from regnet.report.page import fold, table
from regnet.report.registration import Registration

# Figures shown at once: title, decimals, and whether more is better (1), worse (-1) or neither (0).
FIGURES = {
    "dice": ("Dice", 3, 1),
    "hd95_mm": ("HD95, mm", 2, -1),
    "assd_mm": ("surface distance, mm", 2, -1),
    "tre_mm": ("TRE, mm", 2, -1),
    "lncc": ("LNCC", 3, 1),
    "nmi": ("NMI", 3, 1),
    "displacement_mean_mm": ("mean displacement, mm", 2, 0),
    "displacement_max_mm": ("largest displacement, mm", 2, 0),
    "folding_percent": ("folds, %", 4, 0),
    "sdlogj": ("SDlogJ", 3, 0),
    "inverse_mean_mm": ("inverse misses by, mm", 3, 0),
    "inverse_max_mm": ("at most, mm", 3, 0),
}


def figures(registration: Registration, meaning: Mapping[str, str]) -> str:
    """The main figures, and the others folded away; ``meaning`` says what each is."""
    before, after = registration.means
    shown = [name for name in FIGURES if math.isfinite(after.get(name, math.nan))]
    rows = []
    for name in shown:
        title, digits, better = FIGURES[name]
        old, new = before.get(name, math.nan), after[name]
        compared = better != 0 and math.isfinite(old)
        change = (new - old) * better if compared else 0
        kind = "up" if change > 0 else "down" if change < 0 else ""
        named = f'<abbr title="{escape(meaning.get(name, ""))}">{title}</abbr>'
        rows.append((named, f"{old:.{digits}f}" if compared else "", f'<span class="{kind}">{new:.{digits}f}</span>'))
    parts = [table(("", "before", "after"), rows)]
    if "dice" in registration.after:
        old_ones, labels = registration.before["dice"].labels, registration.after["dice"].labels
        rows = [(str(label), f"{old_ones.get(label, math.nan):.3f}", f"{new:.3f}") for label, new in labels.items()]
        parts.append(fold("Dice of each label", table(("label", "before", "after"), rows)))
    rest = {name: value for name, value in after.items() if name not in shown and math.isfinite(value)}
    rows = [(f"<code>{name}</code>", f"{value:.4g}", escape(meaning.get(name, ""))) for name, value in rest.items()]
    parts.append(fold("More figures", table(("", "", "what it is"), rows)))
    return "".join(parts)
