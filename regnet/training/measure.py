"""How good the registration of a validation batch is, in the numbers that are logged."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

from torch import Tensor

from regnet import metrics, ops
from regnet.losses import landmark_distance

MEASURES = ("folding", "sdlogj", "ndv", "epe", "dice", "tre")
"""All that :func:`measure` may find."""

_LOGGED = (*MEASURES, "loss", "lr")


def check_names(terms: Iterable[str]) -> None:
    """ValueError for a loss term whose values would be logged under the name of another figure."""
    for name in terms:
        if name in _LOGGED or "/" in name:
            raise ValueError(
                f"loss.terms.{name}: a loss term cannot be called so: the log has figures called {', '.join(_LOGGED)}, "
                "and a / in others; take another name"
            )


def measure(outputs: Mapping[str, Tensor], batch: Mapping[str, Any]) -> dict[str, float]:
    """Overlap, regularity and true error of a batch: means over its pairs.

    Args:
        outputs: ``displacement`` ``(N, D, *spatial)``, voxels.
        batch: ``fixed`` ``(N, C, *spatial)``, ``spacing`` ``(N, D)`` mm, and what there is of ``moving_labels``,
            ``fixed_labels`` ``(N, 1, *spatial)``, ``moving_points``, ``fixed_points`` ``(N, K, D)`` in voxels, and the
            true ``flow`` ``(N, D, *spatial)``.

    Returns:
        ``folding`` (fraction of the foreground where the map folds), ``ndv`` (non-diffeomorphic volume over the
        foreground's) and ``sdlogj`` in the foreground; ``dice`` (mean over the labels, warped nearest) where both
        images have labels; ``tre`` (mean distance of landmarks, mm) where both have landmarks; ``epe`` (mean distance
        to the true field in the foreground, mm) where it is known.
    """
    values: dict[str, list[float]] = defaultdict(list)
    for n in range(len(batch["fixed"])):
        flow = outputs["displacement"][n : n + 1].float()
        foreground = (batch["fixed"][n : n + 1] != 0).any(1, keepdim=True)
        (regularity,) = metrics.jacobian_statistics(flow, foreground)
        values["folding"].append(regularity["folding"])
        values["sdlogj"].append(regularity["sdlogj"])
        values["ndv"].append(metrics.non_diffeomorphic_volume(flow, foreground))
        truth = batch["flow"][n : n + 1] if "flow" in batch else None
        if truth is not None and truth.isfinite().all():  # NaN: nobody knows it
            values["epe"].append(metrics.endpoint_error(flow, truth, batch["spacing"][n : n + 1], foreground))
        if "moving_labels" in batch and "fixed_labels" in batch:
            moved = ops.warp_labels(batch["moving_labels"][n : n + 1], flow, mode="nearest")
            overlap = metrics.dice(moved, batch["fixed_labels"][n : n + 1])
            if overlap:  # a pair without any label says nothing
                values["dice"].append(fmean(overlap.values()))
        if "moving_points" in batch and "fixed_points" in batch:
            moving, fixed = (batch[name][n : n + 1] for name in ("moving_points", "fixed_points"))
            if fixed.isfinite().all(2).any():  # nor does one without landmarks
                values["tre"].append(float(landmark_distance(flow, moving, fixed, batch["spacing"][n : n + 1])))
    return {name: fmean(each) for name, each in values.items()}
