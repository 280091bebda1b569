"""Warp label maps: values stay labels."""

import numbers
from typing import Any

import torch
from torch import Tensor

from regnet.ops import _check, _core, _torch
from regnet.ops._library import define, fold, unfold
from regnet.ops.sampling import ready

_MODES = {"nearest": 0, "linear": 1}


def warp_labels(
    labels: Tensor, flow: Tensor, mode: str = "linear", matrix: Tensor | None = None, background: int = 0
) -> Tensor:
    """Pull a label map through a displacement field, in one pass.

    Args:
        labels: ``(N, 1, *in)``, of any integer type or bool; every value is kept exactly.
        flow: ``(N, D, *out)``, voxels, as in :func:`regnet.ops.warp`; ``matrix`` likewise. Neither has a gradient.
        mode: "nearest": the label of the nearest voxel; "linear": the label whose linearly warped indicator is
            largest (the smaller label wins a tie), which gives smoother borders. No indicator is ever made.
        background: what counts outside the field of view of ``labels``, and where ``flow`` is not finite.

    Returns:
        ``(N, 1, *out)``, of the type of ``labels``; no value that was not in ``labels``, but ``background``.

    Raises:
        ValueError: not integers, an unknown mode, shapes that do not fit, or a background that the type does not
            hold.
    """
    _check.dense("labels", labels)
    if labels.dtype.is_floating_point or labels.dtype.is_complex:
        raise ValueError(f"labels must be integers, got {labels.dtype}; round and convert them with .long()")
    if mode not in tuple(_MODES):
        raise ValueError(f'mode must be "linear" or "nearest", got {mode!r}')
    ndim = _check.field("flow", flow)
    if labels.ndim != ndim + 2 or labels.shape[1] != 1:
        raise ValueError(f"labels must be (N, 1, *spatial) with {ndim} spatial axes, got {tuple(labels.shape)}")
    if not isinstance(background, numbers.Real) or background % 1 != 0:
        raise ValueError(f"background must be a whole number, got {background!r}")
    held = torch.iinfo(torch.uint8 if labels.dtype == torch.bool else labels.dtype)
    highest = 1 if labels.dtype == torch.bool else held.max
    if not held.min <= background <= highest:
        raise ValueError(f"background {background} does not fit into {labels.dtype}, the type of labels; widen it")
    if matrix is not None:
        _check.affine("matrix", matrix, ndim)
    batch, dtype = _check.together(labels=labels, flow=flow, matrix=matrix)
    _check.voxels("labels", labels.shape[2:], flow)
    affine = None if matrix is None else ready(matrix.detach(), batch, dtype)
    voters, places = ready(labels, batch, labels.dtype), ready(flow.detach(), batch, dtype)
    bits = int(background) - (2**64 if background >= 2**63 else 0)  # an operator takes int64
    return _vote(voters, places, affine, _MODES[mode], bits)


def _vote_fake(labels: Tensor, flow: Tensor, matrix: Tensor | None, order: int, background: int) -> Tensor:
    return labels.new_empty([*labels.shape[:2], *flow.shape[2:]])


@_core.native_or(_torch.vote)
def _vote_kernel(labels: Tensor, flow: Tensor, matrix: Tensor | None, order: int, background: int) -> Tensor:
    out = _vote_fake(labels, flow, matrix, order, background)
    if out.numel():
        matrix = None if matrix is None else matrix.contiguous()
        _core.call("vote", labels, labels, flow, True, matrix, out, order, background)
    return out


def _vote_vmap(info: Any, in_dims: tuple, labels: Tensor, flow: Tensor, matrix: Tensor | None, *rest: int) -> Any:
    return unfold(info.batch_size, _vote(*fold(info.batch_size, in_dims, labels, flow, matrix), *rest)), 0


_vote = define(
    "vote",
    "(Tensor labels, Tensor flow, Tensor? matrix, int order, int background) -> Tensor",
    _vote_kernel,
    _vote_fake,
    backward=None,
    setup=None,
    jvp=None,
    vmap=_vote_vmap,
)
