"""Grey 2-D pictures: PNG and TIFF.

As ITK reads them: the first axis is the column (to the right on the screen, the patient's left), the second the row
(downwards, posterior), and the first pixel's centre is the origin.
"""

import warnings
from pathlib import Path

import numpy as np
import PIL.Image
from PIL.TiffImagePlugin import TiffImageFile

from regnet.errors import InputError
from regnet.spatial.grid import Grid, per_axis

SUFFIXES = (".png", ".tif", ".tiff")
_GREY_MODES = ("1", "L", "I", "F", "I;16", "I;16B", "I;16L", "I;16N")
_MM_PER_INCH = 25.4


def read(path: Path, spacing: float | tuple[float, float] | None) -> tuple[np.ndarray, np.ndarray]:
    """The pixels ``(X, Y)`` in their own type and the 3x3 affine, pixel -> RAS mm.

    Raises:
        InputError: unreadable, coloured, or of several pages.
    """
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of harmless tags
            with PIL.Image.open(path) as picture:
                if getattr(picture, "n_frames", 1) != 1:
                    raise InputError(f"{path}: holds {picture.n_frames} pages; give one slice per file")
                if picture.mode not in _GREY_MODES:
                    raise InputError(f"{path}: is a colour picture (mode {picture.mode}); convert it to grey")
                array = np.array(picture)
                dpi = _dots_per_inch(picture)
    except PIL.Image.DecompressionBombError as error:
        raise InputError(f"{path}: too many pixels to be a slice ({error})") from error
    except InputError:
        raise
    except Exception as error:  # damaged pictures raise whatever their bytes happen to mean
        raise InputError(f"{path}: not a readable picture, truncated or damaged") from error
    if array.dtype == bool:
        array = array.astype(np.uint8)
    if spacing is not None:
        step = per_axis(spacing, 2, "spacing")
    elif dpi is not None:
        step = (_MM_PER_INCH / dpi[0], _MM_PER_INCH / dpi[1])
    else:
        step = (1.0, 1.0)
    return np.ascontiguousarray(array.T), np.diag([-step[0], -step[1], 1.0])


def _dots_per_inch(picture: PIL.Image.Image) -> tuple[float, float] | None:
    # Pillow says 1 dpi of a TIFF that has no resolution, or one without a unit.
    if isinstance(picture, TiffImageFile) and picture.tag_v2.get(296, 2 if 282 in picture.tag_v2 else 1) not in (2, 3):
        return None
    across, down = (float(d) for d in picture.info.get("dpi", (0, 0)))
    return (across, down) if across > 0 and down > 0 else None


def write(temporary: Path, path: Path, array: np.ndarray, grid: Grid) -> None:
    """Write ``(X, Y)`` pixels to ``temporary``; ``path`` is for messages. PNG holds whole grey levels only.

    Raises:
        InputError: a geometry or values that the format cannot hold.
    """
    step = grid.spacing
    if grid.ndim != 2 or not np.allclose(grid.affine.numpy(), np.diag([-step[0], -step[1], 1.0]), atol=1e-6):
        raise InputError(f"{path}: a picture holds no such geometry; write .nii.gz")
    if path.suffix.lower() == ".png":
        array = np.rint(array) if array.dtype.kind == "f" else array
        if array.min() < 0 or array.max() > np.iinfo(np.uint16).max:
            raise InputError(f"{path}: PNG holds grey levels from 0 to 65535; write .tif or .nii.gz")
        array = array.astype(np.uint8 if array.max() <= np.iinfo(np.uint8).max else np.uint16)
    elif array.dtype in (np.int8, np.int16):
        array = array.astype(np.int32)
    dpi = (_MM_PER_INCH / step[0], _MM_PER_INCH / step[1])
    PIL.Image.fromarray(np.ascontiguousarray(array.T)).save(temporary, dpi=dpi)
