"""Draw the figure of ``docs/metrics.md``: where a label's surface lies, and a fold that central differences miss.

Usage: ``python tools/make_metric_figure.py [--out docs/figures]``
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from figures import draw_all, save
from matplotlib.axes import Axes
from scipy.spatial import KDTree

from regnet.metrics import folding_fraction, non_diffeomorphic_volume, surface_distances

ONE, OTHER, GREY = "#b2182b", "#2166ac", "0.75"


def cells(inside: np.ndarray) -> np.ndarray:
    """Centres of the cells with corners inside and outside, ``(n, 2)``."""
    corners = inside[:-1, :-1].astype(int) + inside[1:, :-1] + inside[:-1, 1:] + inside[1:, 1:]
    return np.argwhere((corners > 0) & (corners < 4)) + 0.5


def draw_surfaces(axes: Axes) -> None:
    """Two labels, their contours, and the way from each cell of one to the nearest of the other."""
    x, y = np.mgrid[0:13, 0:16]
    one = (x - 6) ** 2 + (y - 6) ** 2 < 20
    other = (x - 6) ** 2 / 1.4 + (y - 8.2) ** 2 < 22
    for inside, colour in ((one, ONE), (other, OTHER)):
        axes.contour(inside.T.astype(float), [0.5], colors=colour, linewidths=1.5)
        axes.plot(*np.argwhere(inside).T, "o", color=colour, markersize=2.5, alpha=0.5)
    start, end = cells(one), cells(other)
    nearest = end[KDTree(end).query(start)[1]]
    for a, b in zip(start, nearest, strict=True):
        axes.plot(*zip(a, b, strict=True), color="0.3", linewidth=0.8)
    axes.plot(*start.T, "s", color=ONE, markersize=4, markerfacecolor="white")
    found = surface_distances(torch.from_numpy(one).long(), torch.from_numpy(other).long())[1]
    axes.set_title(f"HD95 {found['hd95']:.1f}, mean {found['assd']:.2f} voxels", loc="left", fontsize=9)


def draw_fold(axes: Axes) -> None:
    """The image of a grid under a checkerboard; turned triangles are filled."""
    shape = (9, 9)
    x, y = np.mgrid[0 : shape[0], 0 : shape[1]]
    flow = np.zeros((2, *shape))
    flow[0, 2:-2, 2:-2] = (0.7 * (-1.0) ** (x + y))[2:-2, 2:-2]
    places = np.stack([x, y]) + flow
    for i, j in np.ndindex(shape[0] - 1, shape[1] - 1):
        for corners in (((i, j), (i + 1, j), (i, j + 1)), ((i + 1, j + 1), (i, j + 1), (i + 1, j))):
            triangle = np.array([places[:, p, q] for p, q in corners])
            turned = np.linalg.det(triangle[1:] - triangle[0]) < 0
            axes.fill(*triangle.T, facecolor=ONE if turned else "none", edgecolor=GREY, linewidth=0.7, alpha=0.8)
    field = torch.from_numpy(flow)[None]
    inner = torch.zeros(1, 1, *shape)
    inner[..., 3:-3, 3:-3] = 1
    folded, volume = 100 * folding_fraction(field, inner), 100 * non_diffeomorphic_volume(field, inner)
    axes.set_title(f"folding in the middle {folded:.0f} %, turned over {volume:.0f} %", loc="left", fontsize=9)


def draw_metrics(path: Path) -> None:
    """Both panels."""
    figure, panels = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
    draw_surfaces(panels[0])
    draw_fold(panels[1])
    for axes in panels:
        axes.set_aspect("equal")
        axes.axis("off")
    save(figure, path)


if __name__ == "__main__":
    draw_all(__doc__, {"metrics": draw_metrics})
