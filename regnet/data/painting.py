"""An image of a label map, as a scanner of any kind might have made it."""

from dataclasses import dataclass
from math import exp

import torch
from torch import Tensor

from regnet import ops
from regnet.data.prepare import smooth
from regnet.data.splines import random_field


@dataclass(frozen=True)
class Look:
    """How far the looks of images differ. Every draw is uniform from 0 to the value, unless it says otherwise.

    Attributes:
        texture: deviation of the grey values of a label, whose mean is uniform in [0, 1].
        blur: deviation of a Gaussian, voxels.
        bias: deviation of the logarithm of the bias field, whose control points are ``bias_mm`` apart.
        bias_mm: see ``bias``.
        thickness: how many times thicker than the voxels the slices along one axis are: from 1 to this.
        noise: deviation of the noise (1: the range of the grey values).
        gamma: deviation of the logarithm of the exponent, normal.
        crop: share of the field of view that is cut off at an end of one axis, in half of the images.
    """

    texture: float = 0.1
    blur: float = 1.0
    bias: float = 0.4
    bias_mm: float = 60.0
    thickness: float = 3.0
    noise: float = 0.05
    gamma: float = 0.25
    crop: float = 0.15


def paint(
    labels: Tensor, count: int, spacing: float, look: Look, empty: bool, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Paint a label map, in grey values that are independent of the labels' numbers.

    Args:
        labels: ``(1, 1, *spatial)``, 0 to ``count - 1``, on any device.
        count: labels there may be.
        spacing: mm.
        look: how far looks differ.
        empty: whether label 0 is black and without noise, as where a skull was stripped.
        generator: on the CPU. It draws all numbers but the noise, which is drawn on the labels' device, from a seed
            that it draws: equal on devices of one kind.

    Returns:
        Image in [0, 1] and view (1 where it was not cut off), both ``(1, 1, *spatial)`` float32.
    """
    device, shape = labels.device, labels.shape[2:]
    means, deviations = torch.rand(2, count, generator=generator).to(device)
    if empty:
        means[0] = deviations[0] = 0
    texture, blur, bias, thickness, noise, cropped, share = torch.rand(7, generator=generator).tolist()
    speckle = torch.Generator(device).manual_seed(int(torch.randint(2**62, (), generator=generator)))
    index = labels.long()
    image = means[index] + look.texture * texture * deviations[index] * _normal(labels, speckle)
    image = smooth(image, [look.blur * blur] * len(shape))
    image = thick(image, 1 + (look.thickness - 1) * thickness, int(torch.randint(len(shape), (), generator=generator)))
    field = random_field(shape, look.bias_mm / spacing, 1, generator, device)
    image *= (look.bias * bias * field).exp()
    image += look.noise * noise * _normal(labels, speckle)
    exponent = exp(look.gamma * float(torch.randn((), generator=generator)))
    image = _scaled(image).pow(exponent)
    view = torch.ones_like(image)
    axis, end = torch.randint(6, (2,), generator=generator).tolist()
    if cropped < 0.5:
        view = _cut(view, axis % len(shape), end % 2 == 0, look.crop * share)
    if empty:
        view_inside = view * (labels > 0)
        return image * view_inside, view
    return image * view, view


def thick(image: Tensor, factor: float, axis: int) -> Tensor:
    """What is left of ``(N, C, *spatial)`` in slices ``factor`` times as thick along an axis, on the same voxels."""
    sizes = list(image.shape[2:])
    fewer = max(1, round(sizes[axis] / factor))
    if fewer == sizes[axis]:
        return image
    # a slice is a box: its variance beyond the voxel's own
    sigmas = [((factor**2 - 1) / 12) ** 0.5 if d == axis else 0.0 for d in range(len(sizes))]
    coarse = ops.resize(smooth(image, sigmas), [fewer if d == axis else n for d, n in enumerate(sizes)])
    return ops.resize(coarse, sizes)


def _normal(like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(like.shape, generator=generator, device=like.device)


def _scaled(image: Tensor) -> Tensor:
    """To [0, 1], as the normalisation ``percentile`` would, by the quantiles of every seventh voxel."""
    low, high = torch.quantile(image.flatten()[::7], torch.tensor([0.005, 0.995], device=image.device))
    return ((image - low) / (high - low).clamp_min(1e-6)).clamp_(0, 1)


def _cut(view: Tensor, axis: int, begin: bool, share: float) -> Tensor:
    size = view.shape[axis + 2]
    gone = int(share * size)
    view = view.clone()
    view.narrow(axis + 2, 0 if begin else size - gone, gone).zero_()
    return view
