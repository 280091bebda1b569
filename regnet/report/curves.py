"""The curves of a training run."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from regnet.report.log import Log
from regnet.report.svg import BLUE, GREY, ORANGE, svg

_COLUMNS = 3


def loss_curves(log: Log) -> str:
    """SVG of the loss, of each term unweighted, in training and validation, and of the learning rate."""
    panels = [("loss", [("step/loss", GREY), ("train/loss", BLUE), ("val/loss", ORANGE)])]
    panels += [(name, [(f"train/{name}", BLUE), (f"val/{name}", ORANGE)]) for name in log.terms()]
    panels.append(("learning rate", [("train/lr", BLUE)]))
    return _panels(log, panels)


def measure_curves(log: Log) -> str:
    """SVG of what was measured on the validation pairs; empty where nothing was."""
    return _panels(log, [(name, [(f"val/{name}", ORANGE)]) for name in log.measures()])


def _panels(log: Log, panels: Sequence[tuple[str, Sequence[tuple[str, str]]]]) -> str:
    shown = [(title, lines) for title, lines in panels if any(name in log.curves for name, _ in lines)]
    if not shown:
        return ""
    rows = -(-len(shown) // _COLUMNS)
    figure = Figure(figsize=(3.6 * _COLUMNS, 2.3 * rows), layout="constrained")
    for place, (title, lines) in enumerate(shown, start=1):
        axes = figure.add_subplot(rows, _COLUMNS, place)
        for name, colour in lines:
            if name in log.curves:
                every_step = colour == GREY
                mark = "." if len(log.curves[name][0]) < 30 and not every_step else ""
                label = {"step": "each step", "train": "training", "val": "validation"}[name.split("/")[0]]
                axes.plot(*log.curves[name], color=colour, lw=0.7 if every_step else 1.4, marker=mark, label=label)
        if axes.get_ylim()[0] < 0 <= min(min(log.curves[name][1]) for name, _ in lines if name in log.curves):
            axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_title(title, fontsize=10, loc="left")
        if place > len(shown) - _COLUMNS:
            axes.set_xlabel("epoch")
        if place == 1 and len(lines) > 1:
            axes.legend(frameon=False, fontsize=8)
    return svg(figure)
