"""The local correlation and its gradients, slab by slab: few fields at a time, whatever the size of the images."""

import torch
from torch import Tensor

from regnet.losses._window import Range, Window, product

_FLAT = 1e-6
"""A window is flat where its variance is at most this share of the image's variance plus the window's mean square.

Both after the image's mean is taken off: the first part says what contrast means nothing (0.1 % of the image's standard
deviation), the second what float32 sums of squares cannot tell from rounding.
"""

_EMPTY = 1e-6
"""The least total weight of a window that is told from none."""

_SMALL = 2**20
"""Voxels of an image that is not worth cutting."""

_SLABS = 5
"""Into how many slabs a large image is cut at least; more would compute more margins than they save memory."""


def correlation(
    x: Tensor, y: Tensor, window: Window, mask: Tensor | None, wants_x: bool, wants_y: bool
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """One minus the mean correlation, and its gradients where they are wanted. Call it without autograd."""
    dtype = torch.promote_types(x.dtype, y.dtype)
    weight = None if mask is None else mask.to(dtype)
    moments_x, moments_y = _moments(x.to(dtype), weight), _moments(y.to(dtype), weight)
    total, alike = x.new_zeros((2, len(x)), dtype=dtype)
    gradient_x = torch.empty_like(x, dtype=dtype) if wants_x else None
    gradient_y = torch.empty_like(y, dtype=dtype) if wants_y else None
    weights = window.weights(x.shape[2:], x.to(dtype)) if weight is None else None
    size = x.shape[2]
    thick = size if x[0, 0].numel() <= _SMALL else max(2 * window.reach, -(-size // _SLABS))
    for start in range(0, size, thick):
        core = Range(start, min(start + thick, size))
        margin = core.wider(2 * window.reach, size)
        slab = _Slab(
            _standardise(x, moments_x, margin),
            _standardise(y, moments_y, margin),
            None if weight is None else margin.of(weight),
            None if weights is None else product([margin.of(weights[0], 0), *weights[1:]]),
            window,
            core.wider(window.reach, size).within(margin),
        )
        counted, alike_here = slab.sums(core.within(margin))
        total += counted
        alike += alike_here
        if wants_x or wants_y:
            found = slab.gradients(core.within(margin), wants_x, wants_y)
            for gradient, part in zip((gradient_x, gradient_y), found, strict=True):
                if gradient is not None and part is not None:
                    core.of(gradient).copy_(part)
            del found, part
        del slab  # before the next one is made
    seen = total > 0
    inverse = torch.where(seen, 1 / total, 0)
    value = (seen.to(dtype) - alike * inverse).mean()
    step = inverse.view(-1, *[1] * (x.dim() - 1)) * (-(2 if window.squared else 1) / len(total))
    for gradient, moments in ((gradient_x, moments_x), (gradient_y, moments_y)):
        if gradient is not None:
            gradient.mul_(step * moments[1])
    return value, gradient_x, gradient_y


class _Slab:
    """Statistics of each window whose centre lies in ``centres``.

    With n the window's total weight: the mean of either image times sqrt(n), the slope of either image on the other,
    and ``factor``, what the derivative of the correlation is proportional to.
    """

    def __init__(
        self, x: Tensor, y: Tensor, weight: Tensor | None, count: Tensor | None, window: Window, centres: Range
    ) -> None:
        self.x, self.y, self.weight, self.window, self.centres = x, y, weight, window, centres
        if count is None:
            assert weight is not None
            count = window.sum(weight).clamp_(min=_EMPTY)
        self.root = count.rsqrt()
        weighted_x, weighted_y = (x, y) if weight is None else (x * weight, y * weight)
        self.mean_x, self.mean_y = window.sum(weighted_x).mul_(self.root), window.sum(weighted_y).mul_(self.root)
        product = weighted_x * y
        covariance = window.sum(product).addcmul_(self.mean_x, self.mean_y, value=-1)
        torch.mul(weighted_x, x, out=product)
        self.slope_x, self.seen = _inverse_variance(window.sum(product), self.mean_x, count)
        torch.mul(weighted_y, y, out=product)
        self.slope_y, seen_y = _inverse_variance(window.sum(product), self.mean_y, count)
        self.factor = torch.mul(self.slope_x, self.slope_y, out=product)
        if window.squared:
            self.factor *= covariance
        else:
            self.factor.sqrt_()
        self.alike = self.factor * covariance
        self.alike.clamp_(min=0 if window.squared else -1, max=1)
        self.slope_x *= covariance
        self.slope_y *= covariance
        torch.maximum(self.seen, seen_y, out=self.seen)
        if weight is not None:
            self.seen, self.alike = self.seen.mul(weight), self.alike.mul_(weight)
            self.factor *= weight

    def sums(self, core: Range) -> tuple[Tensor, Tensor]:
        """Per sample: weight of the windows that count, and their correlation; centred in ``core``."""
        sums = (core.of(self.seen).flatten(1).sum(1), core.of(self.alike).flatten(1).sum(1))
        del self.seen, self.alike
        return sums

    def gradients(self, core: Range, wants_x: bool, wants_y: bool) -> tuple[Tensor | None, Tensor | None]:
        """Of the summed correlation in the standardised images, in ``core``; half of it for squares.

        A window's correlation depends on x_i as factor * [(y_i - mean_y) - slope_x (x_i - mean_x)]; the sum over the
        windows that hold voxel i is a window sum again.
        """
        inner = Range(core.start - self.centres.start, core.stop - self.centres.start)
        root, factor = self.centres.of(self.root), self.centres.of(self.factor)
        common = inner.of(self.window.sum(factor))
        scratch = torch.empty_like(factor)
        means = self.centres.of(self.mean_x), self.centres.of(self.mean_y)

        def gradient(own: Tensor, other: Tensor, mean: Tensor, mean_other: Tensor, slope: Tensor) -> Tensor:
            slope = self.centres.of(slope).mul_(factor)
            torch.mul(factor, mean_other, out=scratch).addcmul_(slope, mean, value=-1).mul_(root)
            result = inner.of(self.window.sum(slope)).mul_(core.of(own)).add_(inner.of(self.window.sum(scratch)))
            result.addcmul_(common, core.of(other), value=-1).neg_()
            return result if self.weight is None else result.mul_(core.of(self.weight))

        return (
            gradient(self.x, self.y, means[0], means[1], self.slope_x) if wants_x else None,
            gradient(self.y, self.x, means[1], means[0], self.slope_y) if wants_y else None,
        )


def _moments(image: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """Mean, and one over the standard deviation, per sample and channel.

    The correlation depends on neither; float32 sums of squares do, at an offset of 1e4 or a gain of 1e-12.
    """
    axes = tuple(range(2, image.dim()))
    if weight is None:
        mean = image.mean(axes, keepdim=True)
        square = (image - mean).square_().mean(axes, keepdim=True)
    else:
        total = weight.sum(axes, keepdim=True)
        share = weight / torch.where(total > 0, total, 1)
        mean = (image * share).sum(axes, keepdim=True)
        square = (image - mean).square_().mul_(share).sum(axes, keepdim=True)
    return mean, torch.where(square == 0, 0, square.rsqrt())


def _standardise(image: Tensor, moments: tuple[Tensor, Tensor], where: Range) -> Tensor:
    return (where.of(image) - moments[0]).mul_(moments[1])


def _inverse_variance(square: Tensor, mean: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """One over n times the variance of each window, 0 where it is flat, and 1 where it is not flat.

    ``square``, the window's sum of squares, is overwritten. NaN stays, so that it reaches the loss.
    """
    floor = torch.add(count, square).mul_(_FLAT)
    variance = square.addcmul_(mean, mean, value=-1)
    seen = (variance > floor).to(variance.dtype)
    return torch.maximum(variance, floor, out=variance).reciprocal_().mul_(seen), seen
