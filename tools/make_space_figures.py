"""Draw the figures of ``docs/spaces.md``: which way a field points, and one place in the numbers of four spaces.

Usage: ``python tools/make_space_figures.py [--out docs/figures]``
"""

from pathlib import Path

import matplotlib.pyplot as plt
import torch
from figures import draw_all, save
from matplotlib.axes import Axes
from matplotlib.patches import Ellipse, Polygon
from torch import Tensor

from regnet.io.fsl_affine import millimetres
from regnet.spatial import Displacement, Grid

SKIN, FIXED, MOVING, PLACE = "0.35", "#2166ac", "#b2182b", "#1a9850"
# An axial slice of a head, the first axis to the left (LAS), 10 mm: 16 x 20 voxels about the origin.
HEAD = Grid((16, 20, 3), torch.tensor([[-10.0, 0, 0, 75], [0, 10, 0, -95], [0, 0, 10, -10], [0, 0, 0, 1]]))
VOXEL = torch.tensor([4.0, 14.0, 1.0])


def bump(x: Tensor, y: Tensor, where: tuple[float, float]) -> Tensor:
    """A blob."""
    return torch.exp(-((x - where[0]) ** 2 + (y - where[1]) ** 2) / 6)


def draw_direction(path: Path) -> None:
    """A blob that lies 3 voxels further to the right in the moving image: the field on the fixed grid points there."""
    grid = Grid((16, 12), torch.eye(3))
    x, y = torch.meshgrid(torch.arange(16.0), torch.arange(12.0), indexing="ij")
    moving = bump(x, y, (10, 6))
    flow = torch.stack([3 * bump(x, y, (8, 6)) ** 0.15, torch.zeros_like(x)])
    moved = Displacement(flow, grid).apply(moving[None, None], grid)[0, 0]
    figure, panels = plt.subplots(1, 3, figsize=(10, 2.9), layout="constrained", sharey=True)
    titles = ("fixed image, and the field on its grid", "moving image", "moved image = moving(p + flow(p))")
    for axes, image, title in zip(panels, (bump(x, y, (7, 6)), moving, moved), titles, strict=True):
        axes.imshow(image.T, origin="lower", cmap="Greys", vmin=0, vmax=1.6)
        axes.set_title(title, fontsize=9)
        axes.tick_params(labelsize=7)
    panels[0].quiver(
        *(t[1::3, ::2] for t in (x, y, *flow)), angles="xy", scale_units="xy", scale=1, color=FIXED, width=0.005
    )
    panels[0].plot(7, 6, "o", color=PLACE, markersize=6)
    panels[1].plot(10, 6, "o", color=PLACE, markersize=6)
    panels[2].plot(7, 6, "o", color=PLACE, markersize=6)
    panels[1].annotate(
        "", (10, 6), (7, 6), arrowprops={"arrowstyle": "->", "color": PLACE, "linewidth": 1.5, "shrinkA": 0}
    )
    panels[1].text(10, 2.2, "a point of the fixed image\ngoes along the arrow", fontsize=7, color=PLACE, ha="center")
    panels[2].text(7, 2.2, "an image comes back\nagainst it", fontsize=7, color=PLACE, ha="center")
    save(figure, path)


def head(axes: Axes) -> None:
    """Seen from above, the nose up; the patient's right is on the reader's right."""
    axes.add_patch(Polygon([(-9, 88), (0, 101), (9, 88)], closed=True, fill=False, edgecolor=SKIN))
    axes.add_patch(Ellipse((0, 0), 150, 184, fill=False, edgecolor=SKIN))
    axes.text(-71, 0, "L", color=SKIN, fontsize=9, va="center")
    axes.text(66, 0, "R", color=SKIN, fontsize=9, va="center")
    axes.set_xlim(-95, 95)
    axes.set_ylim(-112, 112)
    axes.set_aspect("equal")
    axes.axis("off")


def arrow(axes: Axes, start: tuple[float, float], step: tuple[float, float], name: str) -> None:
    """An axis of a space."""
    end = (start[0] + step[0], start[1] + step[1])
    axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": MOVING, "linewidth": 1.5, "shrinkA": 0})
    axes.text(
        end[0] + 0.22 * step[0], end[1] + 0.22 * step[1], name, color=MOVING, fontsize=9, ha="center", va="center"
    )


def draw_spaces(path: Path) -> None:
    """The same place in voxels, RAS, LPS and FSL's millimetres."""
    world = HEAD.to_world(VOXEL)
    lps = world * torch.tensor([-1, -1, 1])
    fsl = millimetres(HEAD).to_voxel(world)
    first, corner = HEAD.to_world(torch.zeros(3))[:2].tolist(), (0.0, 0.0)
    spaces = (
        ("voxel, of an LAS image", VOXEL, first, (-40, 40), ("i", "j")),
        ("RAS mm (NIfTI, regnet, SPM, NiftyReg)", world, corner, (40, 40), ("x", "y")),
        ("LPS mm (ITK, ANTs, greedy's fields)", lps, corner, (-40, -40), ("x", "y")),
        ("FSL mm, of an LAS image", fsl, first, (-40, 40), ("x", "y")),
    )
    figure, panels = plt.subplots(1, 4, figsize=(11, 3.2), layout="constrained")
    for axes, (title, numbers, origin, (right, up), names) in zip(panels, spaces, strict=True):
        head(axes)
        axes.set_title(title, fontsize=9)
        start = (float(origin[0]), float(origin[1]))
        arrow(axes, start, (right, 0), names[0])
        arrow(axes, start, (0, up), names[1])
        axes.plot(*world[:2], "o", color=PLACE, markersize=6)
        words = ", ".join(f"{value:g}" for value in numbers.tolist())
        axes.text(float(world[0]), float(world[1]) - 16, f"({words})", color=PLACE, fontsize=9, ha="center")
    save(figure, path)


if __name__ == "__main__":
    draw_all(__doc__, {"direction": draw_direction, "spaces": draw_spaces})
