"""Warp label maps: values stay labels."""

import torch
from torch import Tensor

from regnet.ops import _check
from regnet.ops.fields import warp

_MODES = ("linear", "nearest")
_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)


def warp_labels(
    labels: Tensor, flow: Tensor, mode: str = "linear", matrix: Tensor | None = None, background: int = 0
) -> Tensor:
    """Pull a label map through a displacement field.

    Args:
        labels: ``(N, 1, *in)``, of any integer type.
        flow: ``(N, D, *out)``, voxels, as in :func:`regnet.ops.warp`; ``matrix`` likewise.
        mode: "nearest": the label of the nearest voxel; "linear": the label whose linearly warped indicator is
            largest (the smaller label wins a tie), which gives smoother borders. One label is held at a time.
        background: what counts outside the field of view of ``labels``.

    Returns:
        ``(N, 1, *out)``, of the type of ``labels``; no value that was not in ``labels``, but ``background``.

    Raises:
        ValueError: not integers, an unknown mode, shapes that do not fit, or a background that the type does not
            hold.
    """
    if not isinstance(labels, Tensor):
        raise ValueError(f"labels must be a torch tensor, got {type(labels).__name__}")
    if labels.dtype.is_floating_point or labels.dtype.is_complex:
        raise ValueError(f"labels must be integers, got {labels.dtype}; round and convert them with .long()")
    if mode not in _MODES:
        raise ValueError(f'mode must be "linear" or "nearest", got {mode!r}')
    if labels.ndim < 2 or labels.shape[1] != 1:
        raise ValueError(f"labels must be (N, 1, *spatial), got {tuple(labels.shape)}")
    if not float(background).is_integer():
        raise ValueError(f"background must be a whole number, got {background}")
    held = torch.iinfo(torch.uint8 if labels.dtype == torch.bool else labels.dtype)
    if not held.min <= background <= held.max:
        raise ValueError(f"background {background} does not fit into {labels.dtype}, the type of labels; widen it")
    ndim = _check.field("flow", flow)
    if labels.numel() == 0 and flow.numel():
        raise ValueError(f"labels has no voxels to take, got {tuple(labels.shape)}")
    flow = flow.detach()
    if labels.dtype in _UNSIGNED:
        # torch computes little in these types; int64 holds their values, of uint64 their bits.
        return warp_labels(labels.long(), flow, mode, matrix, background).to(labels.dtype)
    if mode == "nearest":
        small = labels.numel() == 0 or (int(labels.min()) >= -(2**23) and int(labels.max()) <= 2**23)
        if small and abs(background) <= 2**23:
            # float32 holds every label exactly; the difference from the background is 0 out of view.
            moved = warp(labels.float() - background, flow, 0, "replicate", "edge", matrix)
            return (moved.nan_to_num(0.0) + background).to(labels.dtype)
        # Else the labels' numbers in a list, the background first, are moved: no float holds every int64.
        listed, numbers = labels.unique(return_inverse=True)
        moved = warp((numbers + 1).double(), flow, 0, "replicate", "edge", matrix).nan_to_num(0.0)
        return torch.cat([listed.new_full((1,), background), listed])[moved.long()]
    best = torch.zeros(1)
    out = torch.full((1, 1, *[1] * ndim), background, dtype=labels.dtype)
    for label in labels.unique().tolist():
        share = warp((labels == label).float(), flow, 1, "replicate", "edge", matrix)
        out = torch.where(share > best, torch.as_tensor(label, dtype=labels.dtype), out)
        best = torch.maximum(share, best)
    return out
