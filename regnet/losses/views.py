"""Other views of a model's outputs and a batch: on a coarser grid, and from moving to fixed."""

import torch
from torch import Tensor

from regnet import ops
from regnet.losses._precision import as_float
from regnet.losses.term import Tensors

_IMAGES = ("moved", "moved_view", "moving", "fixed", "view", "fixed_mask")
_LABELS = ("moving_labels", "fixed_labels")
_FIELDS = ("displacement", "swapped_displacement", "inverse_displacement")


def coarser(outputs: Tensors, batch: Tensors, level: int) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Outputs and batch with every grid halved ``level`` times.

    An image's voxel becomes the mean of the two it covers along each axis (of an odd size: the linear interpolation
    at its centre), a label map's the label with the largest share; fields are resampled and count in the coarse
    voxels; ``spacing`` grows with them. A velocity or control points stay on the grid they have.

    Args:
        outputs, batch: see ``regnet.losses.term``.
        level: number of halvings.
    """
    out, data = dict(outputs), dict(batch)
    for _ in range(level):
        before = data["fixed"].shape[2:]
        for tensors in (out, data):
            for key, value in tensors.items():
                if key in _IMAGES:
                    tensors[key] = ops.resize(as_float(value), _half(value), bound="replicate")
                elif key in _FIELDS:
                    tensors[key] = ops.resize_flow(value, _half(value), bound="replicate")
                elif key in _LABELS:
                    tensors[key] = _half_labels(value)
        if "spacing" in data:
            ratio = [n / m for n, m in zip(before, data["fixed"].shape[2:], strict=True)]
            data["spacing"] = data["spacing"] * data["spacing"].new_tensor(ratio)
    return out, data


def reversed_view(outputs: Tensors, batch: Tensors) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Outputs and batch with moving and fixed exchanged: the fixed image is warped onto the moving one.

    The field back is ``inverse_displacement`` where the model gives one, the exponential of minus the ``velocity``
    where it has one, else ``swapped_displacement``, its answer to the images exchanged.

    Raises:
        ValueError: there is none of them.
    """
    out, data = dict(outputs), dict(batch)
    if "inverse_displacement" in outputs:
        back = outputs["inverse_displacement"]
    elif "velocity" in outputs:
        back = ops.integrate(-outputs["velocity"], bound="replicate")
        if back.shape[2:] != batch["fixed"].shape[2:]:  # a velocity may be coarse
            back = ops.resize_flow(back, batch["fixed"].shape[2:], bound="replicate")
    elif "swapped_displacement" in outputs:
        back = outputs["swapped_displacement"]
    else:
        raise ValueError(
            "both_directions needs a field from moving to fixed: inverse_displacement, velocity or "
            f"swapped_displacement; the model gives {', '.join(sorted(outputs))}"
        )
    for one, other in (("moving", "fixed"), ("moving_labels", "fixed_labels"), ("moving_points", "fixed_points")):
        if one in batch and other in batch:
            data[one], data[other] = batch[other], batch[one]
    view = batch.get("fixed_mask", torch.ones_like(batch["fixed"][:, :1])).to(back.dtype)
    image = torch.cat([batch["fixed"].to(back.dtype), view], dim=1)
    moved = ops.warp(image, back, bound="replicate", extrapolate="edge")
    out |= {"displacement": back, "moved": moved[:, :-1], "moved_view": moved[:, -1:]}
    out |= {"inverse_displacement": outputs["displacement"], "swapped_displacement": outputs["displacement"]}
    if "velocity" in outputs:
        out["velocity"] = -outputs["velocity"]
    data.pop("fixed_mask", None)
    if "view" in batch:
        data["fixed_mask"] = batch["view"]
    return out, data


def _half(image: Tensor) -> list[int]:
    return [-(-n // 2) for n in image.shape[2:]]


def _half_labels(labels: Tensor) -> Tensor:
    """The label with the largest share of each coarse voxel, as a warp by nothing onto the coarse grid."""
    ndim, shape = labels.dim() - 2, _half(labels)
    flow = torch.zeros((1, ndim, *shape), device=labels.device)
    scale = [n / m for n, m in zip(labels.shape[2:], shape, strict=True)]
    matrix = torch.diag(torch.tensor(scale, device=labels.device))
    offset = torch.tensor([(s - 1) / 2 for s in scale], device=labels.device)[:, None]
    return ops.warp_labels(labels, flow, "linear", matrix=torch.cat([matrix, offset], dim=1)[None])
