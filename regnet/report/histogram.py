"""How a quantity is spread over voxels."""

import numpy as np
from torch import Tensor

from regnet.report.svg import BLUE, GREY, ORANGE, figure, svg

_BINS = 60
_LEAST = 1e-3  # per cent of the voxels that are still seen


def histogram(inside: Tensor, everywhere: Tensor, title: str, bounds: tuple[float, float], mark: float) -> str:
    """SVG: the share of voxels by value, inside the mask (filled) and on the whole grid (a line).

    Args:
        inside, everywhere: the values; what lies beyond ``bounds`` counts in the outermost bin.
        title: of the axis of values.
        bounds: its ends.
        mark: a value to mark by a line, such as 0 for determinants.
    """
    drawn, axes = figure(5.2, 2.2)
    edges = np.linspace(*bounds, _BINS + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    for values, fill in ((everywhere, False), (inside, True)):
        share = np.histogram(values.clip(*bounds).flatten().numpy(), edges)[0] / max(1, values.numel())
        if fill:
            axes.fill_between(middles, 100 * share, step="mid", color=BLUE, alpha=0.45, lw=0, label="inside the mask")
        else:
            axes.step(middles, 100 * share, where="mid", color=GREY, lw=1, label="whole grid")
    if bounds[0] <= mark <= bounds[1]:
        axes.axvline(mark, color=ORANGE, lw=1, ls=":")
    axes.set(xlabel=title, ylabel="% of voxels", xlim=bounds, yscale="log", ylim=(_LEAST, 100))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.legend(frameon=False, fontsize=8)
    return svg(drawn)
