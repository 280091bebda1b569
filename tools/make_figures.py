"""Draw the figures of ``docs/operators.md``: how a signal continues outside its grid, and what counts as in view.

Usage: ``python tools/make_figures.py [--out docs/figures]``
"""

from pathlib import Path

import matplotlib.pyplot as plt
import torch
from figures import draw_all, save
from matplotlib.axes import Axes
from torch import Tensor

from regnet import ops
from regnet.ops.options import BOUNDS

SAMPLES = torch.tensor([[[3.0, 1.0, 2.0, 4.0, 2.5]]])
N = SAMPLES.shape[-1]
VIEWS: tuple[tuple[bool | str, str], ...] = (
    (True, "extrapolate=True"),
    ("center", 'extrapolate="center" or False'),
    ("edge", 'extrapolate="edge"'),
)
GRID, SAMPLE, LINE, CUBIC = "0.92", "#b2182b", "#2166ac", "#92c5de"


def curve(x: Tensor, order: int, bound: str, extrapolate: bool | str = True) -> Tensor:
    """The interpolant at x."""
    return ops.pull(ops.prefilter(SAMPLES, order, bound), x[None, None], order, bound, extrapolate)[0, 0]


def frame(axes: Axes, title: str, low: float, high: float) -> None:
    """The grid from face to face, the samples, and the axes."""
    axes.axvspan(-0.5, N - 0.5, color=GRID, zorder=0)
    axes.axhline(0, color="0.6", linewidth=0.6, zorder=1)
    axes.plot(range(N), SAMPLES.flatten(), "o", color=SAMPLE, markersize=5, zorder=4)
    axes.set_title(title, loc="left", fontsize=9)
    axes.set_xlim(low, high)
    axes.set_ylim(-4.8, 4.8)
    axes.tick_params(labelsize=7)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def draw_bounds(path: Path) -> None:
    """One panel a bound: filled samples, open the values that continue them."""
    reach = N + 1
    x = torch.linspace(-reach, N - 1 + reach, 321)
    outside = torch.tensor([float(i) for i in range(-reach, N + reach) if not 0 <= i < N])
    figure, panels = plt.subplots(len(BOUNDS), 1, figsize=(7.5, 9), sharex=True, layout="constrained")
    for axes, bound in zip(panels, BOUNDS, strict=True):
        frame(axes, bound, -reach, N - 1 + reach)
        axes.plot(x, curve(x, 3, bound), color=CUBIC, linewidth=1.2, zorder=2, label="order 3")
        axes.plot(x, curve(x, 1, bound), color=LINE, linewidth=1.2, zorder=3, label="order 1")
        axes.plot(outside, curve(outside, 1, bound), "o", color=SAMPLE, markerfacecolor="white", markersize=4, zorder=4)
        axes.set_xticks(range(-reach, N + reach))
    panels[0].legend(fontsize=7, loc="upper right", ncols=2, frameon=False)
    panels[-1].set_xlabel("coordinate, voxels", fontsize=8)
    save(figure, path)


def draw_views(path: Path) -> None:
    """One panel a mode, with the coordinates where it ends."""
    x = torch.linspace(-3, N + 2, 2001)
    figure, panels = plt.subplots(1, len(VIEWS), figsize=(9, 2.4), sharey=True, layout="constrained")
    ends = {"center": (-0.05, N - 0.95), "edge": (-0.55, N - 0.45)}
    for axes, (extrapolate, title) in zip(panels, VIEWS, strict=True):
        frame(axes, title, -3, N + 2)
        axes.set_ylim(-0.5, 4.8)
        for end in ends.get(str(extrapolate), ()):
            axes.axvline(end, color="0.3", linewidth=0.8, linestyle=":")
        axes.plot(x, curve(x, 1, "dct2", extrapolate), color=LINE, linewidth=1.2, zorder=3)
        axes.set_xlabel("coordinate, voxels (bound dct2, order 1)", fontsize=8)
    save(figure, path)


if __name__ == "__main__":
    draw_all(__doc__, {"bounds": draw_bounds, "extrapolation": draw_views})
