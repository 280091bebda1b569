"""The four-panel picture of a registration, and the six-panel one."""

from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import torch
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from torch import Tensor

from regnet import ops
from regnet.io import atomic_path
from regnet.report.upright import stands_out, upright
from regnet.spatial import Grid

_TITLES = ("fixed", "moving", "moved")
_BACKGROUND = "black"
_INK = "#d7dae0"
_LINES = 36  # grid lines along the longer side of the slice
_MARGIN = 0.06  # around the content, of its size
_COLOURS = LinearSegmentedColormap.from_list("regnet", colormaps["plasma"](np.linspace(0.3, 1, 64)))
_FOLDS = colormaps["bwr"].with_extremes(under="yellow")
_SIDE = 3.2  # inches of a panel's longer side
_BAR = 0.55  # inches to the right, for the colour bar
_TITLE = 0.34  # inches above
_DPI = 150


def four_panels(
    fixed: Tensor, moving: Tensor, moved: Tensor, flow: Tensor, path: str | Path | None, grid: Grid | None = None
) -> np.ndarray:
    """Draw fixed, moving, moved, and the fixed grid's lines where the map takes them in the moving image.

    The slice is perpendicular to the last axis (axial in a RAS image), through the middle of the fixed image's content.
    Each image has its own grey scale, from its 1st to its 99.5th percentile; empty margins are cut off.

    Args:
        fixed, moving, moved: ``(*spatial)`` or ``(C, *spatial)``, of which the first channel is drawn, on one grid.
        flow: ``(D, *spatial)``, voxels, from the fixed into the moving image; 2-D or 3-D.
        path: a PNG to write, replacing what is there; None writes nothing.
        grid: where the voxels lie. With it the picture is upright, left is left, and its proportions and numbers are
            in mm; None takes the axes as they come, and voxels.

    Returns:
        ``(height, width, 3)``, uint8.

    Raises:
        ValueError: the shapes do not belong together.
        InputError: the file cannot be written.
    """
    pixels = _draw([fixed, moving, moved], flow, grid, more=False)
    if path is not None:
        _write(Path(path), pixels)
    return pixels


def six_panels(fixed: Tensor, moving: Tensor, moved: Tensor, flow: Tensor, grid: Grid | None = None) -> np.ndarray:
    """The panels of :func:`four_panels`, and before the last of them moved minus fixed (red: moved is brighter; the
    scale ends at the 99.5th percentile) and the Jacobian determinant (white 1, red 2 and more, blue 0, yellow: folds).

    Returns:
        ``(height, width, 3)``, uint8.

    Raises:
        ValueError: as there.
    """
    return _draw([fixed, moving, moved], flow, grid, more=True)


def _draw(tensors: list[Tensor], flow: Tensor, grid: Grid | None, more: bool) -> np.ndarray:
    ndim = flow.shape[0]
    shape = tuple(flow.shape[1:])
    if ndim not in (2, 3) or len(shape) != ndim:
        raise ValueError(f"flow must be (D, *spatial), 2-D or 3-D: got {tuple(flow.shape)}")
    images = [_first_channel(image, shape) for image in tensors]
    field = flow.detach().cpu().double()
    if more:
        images.append(ops.jacobian_determinant(field[None])[0, 0])
    unit = "voxel" if grid is None else "mm"
    images, field, size = upright(images, field, grid)
    if ndim == 3:
        middle = _middle(images[0])
        images, field, size = [image[..., middle] for image in images], field[:2, ..., middle], size[:2]
    box = _content(images[:3])
    arrays = [image[box].numpy() for image in images]
    greys = arrays[:3]
    shown = [(title, image, _grey(image)) for title, image in zip(_TITLES, greys, strict=True)]
    if more:
        difference = greys[2] - greys[0]
        shown.append(("moved - fixed", difference, _around(0, np.percentile(np.abs(difference), 99.5) or 1)))
        shown.append(("det J", arrays[3], {**_around(1, 1), "cmap": _FOLDS}))
    faint = _grey(greys[1])
    faint["vmax"] += 1.5 * (faint["vmax"] - faint["vmin"])  # the lines are the subject here
    shown.append(("fixed grid in moving", greys[1], faint))
    return _render(shown, field[:, box[0], box[1]].numpy(), size, unit)


def _grey(image: np.ndarray) -> dict[str, Any]:
    low, high = np.percentile(image, (1, 99.5))
    return {"cmap": "gray", "vmin": low, "vmax": high if high > low else low + 1}


def _around(middle: float, reach: float) -> dict[str, Any]:
    # The least of a scale is just above it, so that a determinant of 0 counts as below it.
    return {"cmap": "bwr", "vmin": np.nextafter(middle - reach, middle), "vmax": middle + reach}


def _first_channel(image: Tensor, shape: tuple[int, ...]) -> Tensor:
    image = image.detach().cpu()
    image = image[0] if image.dim() == len(shape) + 1 else image
    if tuple(image.shape) != shape:
        raise ValueError(f"images must be on the grid of the flow, {shape}: got {tuple(image.shape)}")
    return torch.nan_to_num(image.double())


def _middle(image: Tensor) -> int:
    """Index along the last axis of the middle of what stands out."""
    weight = stands_out(image).sum((0, 1)).double()
    if float(weight.sum()) == 0:
        return image.shape[-1] // 2
    return round(float((weight * torch.arange(len(weight))).sum() / weight.sum()))


def _content(images: list[Tensor]) -> tuple[slice, slice]:
    """The box that holds what stands out in any of the slices, and a margin."""
    seen = torch.stack([stands_out(image) for image in images]).any(0)
    bounds = []
    for axis in (0, 1):
        found = seen.any(1 - axis).nonzero().flatten()
        size = seen.shape[axis]
        first, last = (int(found[0]), int(found[-1])) if len(found) else (0, size - 1)
        margin = max(2, round(_MARGIN * (last + 1 - first)))
        bounds.append(slice(max(0, first - margin), min(size, last + 1 + margin)))
    return bounds[0], bounds[1]


def _render(
    shown: list[tuple[str, np.ndarray, dict[str, Any]]], field: np.ndarray, size: tuple[float, ...], unit: str
) -> np.ndarray:
    """Titles, images and their scales, side by side; over the last the lines of the grid, with their colour bar."""
    width, height = field.shape[1] * size[0], field.shape[2] * size[1]
    inches = _SIDE / max(width, height)
    panel = width * inches, height * inches
    total = len(shown) * panel[0] + _BAR, panel[1] + _TITLE
    figure = Figure(figsize=total, dpi=_DPI, facecolor=_BACKGROUND)
    canvas = FigureCanvasAgg(figure)
    extent = (-0.5 * size[0], width - 0.5 * size[0], -0.5 * size[1], height - 0.5 * size[1])
    for number, (title, image, scale) in enumerate(shown):
        axes = figure.add_axes(
            (number * panel[0] / total[0], 0, panel[0] / total[0], panel[1] / total[1]), facecolor=_BACKGROUND
        )
        axes.imshow(image.T, **scale, origin="lower", extent=extent, interpolation="bilinear")
        axes.set(xlim=extent[:2], ylim=extent[2:])
        axes.set_axis_off()
        axes.set_title(title, color=_INK, fontsize=10, pad=5)
    lines = axes.add_collection(_grid_lines(field, size))
    left, bottom = len(shown) * panel[0] + 0.06, 0.12 * panel[1]
    bar_axes = figure.add_axes((left / total[0], bottom / total[1], 0.08 / total[0], 0.76 * panel[1] / total[1]))
    bar = figure.colorbar(lines, cax=bar_axes)
    bar.outline.set_visible(False)
    bar.set_label(unit, color=_INK, fontsize=7, labelpad=1)
    bar_axes.tick_params(colors=_INK, labelsize=6, length=2, pad=1)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _grid_lines(field: np.ndarray, size: tuple[float, ...]) -> LineCollection:
    """Every so many rows and columns of the grid, at p + flow(p), coloured by the length of the flow in the slice."""
    index = np.stack(np.meshgrid(*(np.arange(n) for n in field.shape[1:]), indexing="ij"))
    scale = np.asarray(size)[:, None, None]
    place, length = (index + field) * scale, np.linalg.norm(field * scale, axis=0)
    step = max(1, round(max(field.shape[1:]) / _LINES))
    starts = [(n - 1) % step // 2 for n in field.shape[1:]]
    segments, colours = [], []
    for axis in (0, 1):
        lines, values = np.moveaxis(place, 1 + axis, 1), np.moveaxis(length, axis, 0)
        for row in range(starts[axis], field.shape[1 + axis], step):
            points = lines[:, row].T
            segments.append(np.stack([points[:-1], points[1:]], axis=1))
            colours.append((values[row, :-1] + values[row, 1:]) / 2)
    collection = LineCollection(list(np.concatenate(segments)), cmap=_COLOURS, linewidths=0.7)
    collection.set_array(np.concatenate(colours))
    collection.set_clim(0, max(float(length.max()), 1e-6))
    return collection


def _write(path: Path, pixels: np.ndarray) -> None:
    with atomic_path(path, overwrite=True) as temporary:
        PIL.Image.fromarray(pixels).save(temporary, format="PNG")
