"""Sums over a sliding window, on a CPU at a cost that does not depend on the window."""

from collections.abc import Sequence

from torch import Tensor

from regnet.ops import _check, _core, _torch_lines
from regnet.ops._library import define_linear


def box_sum(image: Tensor, window: int | Sequence[int]) -> Tensor:
    """Sum over a centred window, zeros outside the image.

    Args:
        image: ``(N, C, *spatial)``.
        window: odd number of voxels, one or one per axis.

    Returns:
        ``(N, C, *spatial)``, of the type of ``image``. Summed in float64, by running sums; on a GPU each sum anew and
        compensated, at a cost that grows with the window. A NaN stays in a running sum: all that follows it on its
        lines is NaN too.

    Raises:
        ValueError: not an image, or a window that is not odd and positive.
    """
    ndim = _check.image("image", image)
    _, dtype = _check.together(image=image)
    windows = _check.per_axis(window, ndim, int)
    if not windows or not all(w > 0 and w % 2 for w in windows):
        raise ValueError(
            f"window must be an odd positive integer, or {ndim} of them, so that it has a centre; got {window!r}"
        )
    return _box(image.to(dtype), windows).to(image.dtype)


@_core.native_or(_torch_lines.box_sum)
def _kernel(image: Tensor, out: Tensor, window: list[int]) -> None:
    source = image if image.is_contiguous() and max(window) > 1 else out.copy_(image)
    workspace = _core.workspace(out, out.numel(), out.dtype)
    for axis, w in enumerate(window):
        if w > 1:
            _core.call("box_sum", out, source, out, workspace, axis, w)
            source = out


# The window is centred and what is outside counts as zero, so the map is its own adjoint.
_box = define_linear("box_sum", "int[] window", _kernel, lambda _, window: (window,))
