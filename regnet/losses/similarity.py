"""How alike two images on one grid are: 0 is alike."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regnet import ops
from regnet.losses._analytic import attach, wants_gradient

_FLAT = 1e-6
"""A window is flat where its variance is at most this share of the image's variance plus the window's mean square.

Both after the image's mean is taken off: the first part says what contrast means nothing (0.1 % of the image's standard
deviation), the second what float32 sums of squares cannot tell from rounding.
"""

_EMPTY = 1e-6
"""The least total weight of a window that is told from none."""


def mse(x: Tensor, y: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mean squared difference.

    Args:
        x, y: ``(N, C, *spatial)``, on one grid.
        mask: weight of each voxel, >= 0, ``(N or 1, C or 1, *spatial)``. The mean is over the mask, not over the grid.
            It is not differentiated.

    Returns:
        0-d: the mean over samples of each sample's weighted mean; a sample with an empty mask adds 0.

    Raises:
        ValueError: the shapes do not fit.
    """
    weight = _check_images(x, y, mask)
    squares = (x - y).square()
    if weight is None:
        return squares.mean()
    weight = weight.to(squares.dtype).expand_as(squares).flatten(1)
    total = weight.sum(1)
    return ((weight * squares.flatten(1)).sum(1) / torch.where(total > 0, total, 1)).mean()


def lncc(x: Tensor, y: Tensor, window: int | Sequence[int] = 9, mask: Tensor | None = None) -> Tensor:
    """One minus the mean squared local normalised cross-correlation.

    Around each voxel the squared correlation coefficient cc² of the two images is taken over a box, cut off at the
    grid's faces. A window flat in both images says nothing and is left out of the mean; one that is flat in one image
    alone counts as cc² = 0, since structure faces nothing. Equal images give 0, unrelated ones nearly 1; the sign of
    the contrast, gain and offset of either image do not matter.

    Args:
        x, y: ``(N, C, *spatial)``, on one grid; each channel is compared with its own.
        window: voxels, odd, one or one per axis; may exceed the grid.
        mask: weight of each voxel, >= 0, ``(N or 1, C or 1, *spatial)``. It weights the statistics of each window and
            the mean over windows alike, so what lies outside of it has no influence: masking is cropping. It is not
            differentiated.

    Returns:
        0-d in [0, 1]: the mean over samples; a sample without any window to compare adds 0. Computed in float64 if
        either image is, else in float32; its gradient is exact, and differentiable no further.

    Raises:
        ValueError: the shapes do not fit, or a window is even.

    Source:
        Avants et al., Medical Image Analysis 2008; without their constant in the denominator.
    """
    weight = _check_images(x, y, mask)
    windows = _check_window(window, x.dim() - 2)
    wanted = wants_gradient(x), wants_gradient(y)
    with torch.no_grad():
        value, gradient_x, gradient_y = _lncc(x, y, windows, weight, *wanted)
    return attach(value, (x, gradient_x), (y, gradient_y))


def _lncc(
    x: Tensor, y: Tensor, window: tuple[int, ...], mask: Tensor | None, wants_x: bool, wants_y: bool
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Value and wanted gradients; fields are reused in place, since memory traffic is what this costs."""
    dtype = torch.float64 if torch.float64 in (x.dtype, y.dtype) else torch.float32
    weight = None if mask is None else mask.to(dtype)
    x, scale_x = _standardise(x.to(dtype), weight)
    y, scale_y = _standardise(y.to(dtype), weight)

    # Per window of total weight n: the mean of either image times sqrt(n), n times the covariance, and one over n
    # times either variance.
    count = _window_count(x.shape[2:], window, x) if weight is None else ops.box_sum(weight, window).clamp_(min=_EMPTY)
    root = count.rsqrt()
    weighted_x, weighted_y = (x, y) if weight is None else (x * weight, y * weight)
    mean_x, mean_y = ops.box_sum(weighted_x, window).mul_(root), ops.box_sum(weighted_y, window).mul_(root)
    product = weighted_x * y
    slope_y = ops.box_sum(product, window).addcmul_(mean_x, mean_y, value=-1)
    slope_x, seen = _inverse_variance(ops.box_sum(torch.mul(weighted_x, x, out=product), window), mean_x, count)
    inverse_y, seen_y = _inverse_variance(ops.box_sum(torch.mul(weighted_y, y, out=product), window), mean_y, count)
    del weighted_x, weighted_y, count
    slope_x *= slope_y
    slope_y *= inverse_y

    squared = torch.mul(slope_x, slope_y, out=product).clamp_(max=1)
    torch.maximum(seen, seen_y, out=seen)
    if weight is not None:
        seen, squared = seen.mul_(weight), squared.mul_(weight)
    total = seen.flatten(1).sum(1)
    inverse_total = torch.where(total > 0, 1 / total, 0)
    value = ((total > 0).to(dtype) - squared.flatten(1).sum(1) * inverse_total).mean()
    if not (wants_x or wants_y):
        return value, None, None
    del seen, seen_y, squared

    # cc² of one window depends on x_i as 2 slope_x / n var_y * [(y_i - mean_y) - slope_x (x_i - mean_x)]; the sum over
    # the windows that hold voxel i is a box sum again.
    factor = torch.mul(slope_x, inverse_y, out=inverse_y)
    if weight is not None:
        factor *= weight
    common = ops.box_sum(factor, window)
    step = inverse_total.view(-1, *[1] * (x.dim() - 1)) * (-2 / len(total))

    def gradient(own: Tensor, other: Tensor, mean: Tensor, mean_other: Tensor, slope: Tensor, scale: Tensor) -> Tensor:
        slope *= factor
        result = ops.box_sum(slope, window).mul_(own)
        torch.mul(factor, mean_other, out=product).addcmul_(slope, mean, value=-1).mul_(root)
        result += ops.box_sum(product, window)
        result.addcmul_(common, other, value=-1).mul_(-step * scale)
        return result if weight is None else result.mul_(weight)

    gradient_x = gradient(x, y, mean_x, mean_y, slope_x, scale_x) if wants_x else None
    gradient_y = gradient(y, x, mean_y, mean_x, slope_y, scale_y) if wants_y else None
    return value, gradient_x, gradient_y


def _standardise(image: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """Mean 0 and standard deviation 1 per sample and channel, and the factor that did it.

    The correlation does not depend on either; float32 sums of squares do, at an offset of 1e4 or a gain of 1e-12.
    """
    axes = tuple(range(2, image.dim()))
    if weight is None:
        centred = image - image.mean(axes, keepdim=True)
        square = centred.square().mean(axes, keepdim=True)
    else:
        total = weight.sum(axes, keepdim=True)
        share = weight / torch.where(total > 0, total, 1)
        centred = image - (image * share).sum(axes, keepdim=True)
        square = (centred.square() * share).sum(axes, keepdim=True)
    scale = torch.where(square == 0, 0, square.rsqrt())
    return centred.mul_(scale), scale


def _inverse_variance(square: Tensor, mean: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """One over n times the variance of each window, 0 where it is flat, and 1 where it is not flat.

    ``square``, the window's sum of squares, is overwritten. NaN stays, so that it reaches the loss.
    """
    floor = torch.add(count, square).mul_(_FLAT)
    variance = square.addcmul_(mean, mean, value=-1)
    seen = (variance > floor).to(variance.dtype)
    return torch.maximum(variance, floor, out=variance).reciprocal_().mul_(seen), seen


def _window_count(shape: Sequence[int], window: tuple[int, ...], like: Tensor) -> Tensor:
    """Number of voxels in the window around each voxel, ``(1, 1, *shape)``; fewer at the faces."""
    count = like.new_ones((1, 1, *[1] * len(shape)))
    for axis, (size, width) in enumerate(zip(shape, window, strict=True)):
        index, half = torch.arange(size, device=like.device), width // 2
        along = (index + half).clamp(max=size - 1) - (index - half).clamp(min=0) + 1
        count = count * along.to(like.dtype).view(-1, *[1] * (len(shape) - 1 - axis))
    return count


def _check_images(x: Tensor, y: Tensor, mask: Tensor | None) -> Tensor | None:
    """Refuse shapes that do not fit."""
    if x.dim() < 3 or x.shape != y.shape:
        raise ValueError(
            f"images must both be (N, C, *spatial) of one shape: got {tuple(x.shape)} and {tuple(y.shape)}"
        )
    if mask is None:
        return None
    fits = mask.dim() == x.dim() and mask.shape[2:] == x.shape[2:]
    if not fits or mask.shape[0] not in (1, x.shape[0]) or mask.shape[1] not in (1, x.shape[1]):
        raise ValueError(
            f"mask must be (N or 1, C or 1, *spatial) for images {tuple(x.shape)}: got {tuple(mask.shape)}"
        )
    return mask.detach()


def _check_window(window: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    """One odd width per axis."""
    windows = (window,) * ndim if isinstance(window, int) else tuple(window)
    if len(windows) != ndim or any(width < 1 or width % 2 == 0 for width in windows):
        raise ValueError(f"window must be odd, one or one for each of {ndim} axes: got {window}")
    return windows
