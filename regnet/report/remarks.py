"""What is to be said of a registration, in words."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from regnet.spatial import Grid

_STILL = 0.1  # voxels: a map that moves less on average has hardly done anything
_MISS = 1.0  # voxels by which map and inverse may miss each other
_LOST = 0.01  # of the mask that may have nothing of the moving image


@dataclass(frozen=True)
class Remark:
    """One sentence; ``kind`` is ``good``, ``note`` or ``warning``."""

    kind: str
    text: str


def folds(determinant: Tensor, mask: Tensor, grid: Grid) -> Remark:
    """Where the map folds.

    Args:
        determinant: ``(*spatial)``.
        mask: of the same shape, true where it counts.
        grid: where the voxels lie.
    """
    folded = determinant <= 0
    total, within = int(folded.sum()), int((folded & mask).sum())
    if not total:
        return Remark("good", "No voxel folds: the determinant of the Jacobian is above 0 everywhere.")
    voxels = "1 voxel folds" if total == 1 else f"{total:,} voxels fold"
    if not within:
        return Remark("note", f"{voxels}, {'' if total == 1 else 'all '}outside the mask.")
    share = 100 * within / max(1, int(mask.sum()))
    some = "" if total == 1 else "all " if within == total else f"{within:,} of them "
    first = grid.to_world((folded & mask).nonzero()[0].double()).tolist()
    at = ", ".join(f"{value:.0f}" for value in first)
    return Remark("warning", f"{voxels}, {some}inside the mask ({share:.2g} % of it), the first at ({at}) mm.")


def coverage(view: Tensor, mask: Tensor) -> list[Remark]:
    """How much of the mask the moving image does not reach; both ``(*spatial)``, booleans."""
    lost = float((mask & ~view).sum()) / max(1, int(mask.sum()))
    if lost <= _LOST:
        return []
    return [Remark("warning", f"{100 * lost:.0f} % of the mask lies outside the moving image's field of view.")]


def movement(figures: Mapping[str, float], spacing: float) -> list[Remark]:
    """Whether the map does anything, and whether its inverse is one; ``spacing``: mm of a voxel's shortest side."""
    found = []
    mean = figures.get("displacement_mean_mm", math.nan)
    if mean < _STILL * spacing:
        found.append(Remark("note", f"The map hardly moves anything: {mean:.2g} mm on average inside the mask."))
    miss, most = figures.get("inverse_mean_mm", math.nan), figures.get("inverse_max_mm", math.nan)
    if not math.isnan(miss):
        kind = "good" if most < _MISS * spacing else "warning" if miss >= _MISS * spacing else "note"
        found.append(
            Remark(kind, f"After map and inverse a voxel is {miss:.2g} mm from where it began, {most:.2g} mm at most.")
        )
    return found


def change(before: Mapping[str, float], after: Mapping[str, float]) -> list[Remark]:
    """What became better and worse: figures by name, of ``regnet evaluate``, before and after."""
    found = []
    if math.isfinite(after.get("dice", math.nan)):
        old, new = before["dice"], after["dice"]
        said = f"Dice {'rose' if new >= old else 'fell'} from {old:.3f} to {new:.3f}."
        found.append(Remark("good" if new >= old else "warning", said))
    old, new = before.get("lncc", math.nan), after.get("lncc", math.nan)
    more = after.get("nmi", math.nan) > before.get("nmi", math.nan)
    if new < old and more:  # as between contrasts
        found.append(Remark("note", f"LNCC fell from {old:.3f} to {new:.3f}, yet mutual information rose."))
    elif new < old:
        found.append(Remark("warning", f"The images are less alike than before: LNCC {new:.3f} after {old:.3f}."))
    elif new > old:
        found.append(Remark("good", f"The images are more alike than before: LNCC {new:.3f} after {old:.3f}."))
    return found
