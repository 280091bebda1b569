"""The fixed image's grid where the map takes it in the moving image, as lines over slices."""

import numpy as np
from torch import Tensor

from regnet.report.planes import Plane

_LINES = 26  # along the longer side of a slice
_UNIT = 10  # parts of a voxel that coordinates are rounded to


def lattice(plane: Plane, field: Tensor) -> str:
    """SVG of every so many rows and columns of each slice, at p + flow(p); what leaves a slice's window is cut off.

    Args:
        plane: the slices.
        field: upright, ``(D, *spatial)``, voxels. Of it, the part within the slice is seen.

    Returns:
        One ``<svg>`` a slice, below each other, in voxels of the strip.
    """
    right, up = (plane.cut(field[axis]) for axis in plane.across)
    width, height = plane.shape
    step = max(1, round(max(width, height) / _LINES))
    along = max(1, step // 3)  # between two points of a line
    parts = []
    for number in range(len(plane.at)):
        x = (np.arange(width)[None] + 0.5 + right[number]) * _UNIT
        y = (np.arange(height)[:, None] + 0.5 - up[number]) * _UNIT  # the slice's rows go down
        lines = [(x[row, ::along], y[row, ::along]) for row in range(step // 2, height, step)]
        lines += [(x[::along, column], y[::along, column]) for column in range(step // 2, width, step)]
        paths = "".join(_line(np.stack(line, 1)) for line in lines)
        parts.append(
            f'<svg y="{number * height}" width="{width}" height="{height}" '
            f'viewBox="0 0 {width * _UNIT} {height * _UNIT}" preserveAspectRatio="none">'
            f'<path vector-effect="non-scaling-stroke" d="{paths}"/></svg>'
        )
    return "".join(parts)


def _line(points: np.ndarray) -> str:
    whole = np.nan_to_num(points).round().astype(int)
    moves = np.diff(whole, axis=0).tolist()
    return f"M{whole[0, 0]} {whole[0, 1]}l" + " ".join(f"{x} {y}" for x, y in moves)
