"""Synthetic pairs: one brain, bent twice by known smooth maps and seen by two different scanners."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import ceil, cos, exp, sin

import numpy as np
import torch
from torch import Tensor

from regnet import ops
from regnet.data.normalise import normalise
from regnet.data.prepare import foreground_box, majority, prepare, smooth, smoothing
from regnet.data.spec import InputSpec
from regnet.data.splines import control_shape, random_field, spline_field
from regnet.io.image import Image
from regnet.spatial.grid import Grid, matrix

_COARSE = 2  # fields are integrated on a lattice of this many voxels, and B-splines between
_SQUARINGS = 4  # the largest velocities are about two lattice steps: an eighth of one is as good as none


@dataclass(frozen=True)
class Recipe:
    """How far synthetic pairs differ. Every draw is uniform between two ends or normal around none.

    Attributes:
        displacement_mm: ends of the deviation (per component) of the deformation between moving and fixed; it is
            shared at random between the scales. Two brains differ by about 2.
        anatomy_mm: the same for the deformation of the brain before the pair is made of it.
        scales_mm: control spacings of the random velocities.
        rotation_deg, scaling, shift_mm: largest pose change of the brain before the pair is made of it.
        flip: whether left and right change places in half of the pairs.
        gamma: deviation of the logarithm of the exponent of the grey values.
        contrast: largest loss of gain: how far the brightest tissue may stay below 1.
        bias: deviation of the logarithm of the bias field (control points ``bias_mm`` apart).
        bias_mm: see ``bias``.
        noise: largest deviation of the noise (1: the range of the grey values), in the foreground.
    """

    displacement_mm: tuple[float, float] = (0.5, 3.5)
    anatomy_mm: tuple[float, float] = (0.0, 3.0)
    scales_mm: tuple[float, ...] = (16.0, 32.0, 64.0)
    rotation_deg: float = 5.0
    scaling: float = 0.08
    shift_mm: float = 4.0
    flip: bool = True
    gamma: float = 0.25
    contrast: float = 0.2
    bias: float = 0.15
    bias_mm: float = 64.0
    noise: float = 0.03

    def __post_init__(self) -> None:
        for name in ("displacement_mm", "anatomy_mm", "scales_mm"):  # plain tuples, whatever sequence a config gives
            given = getattr(self, name)
            try:
                values = tuple(float(value) for value in given)
            except (TypeError, ValueError):
                values = ()
            ends = name != "scales_mm"
            if not values or min(values) < 0 or (ends and (len(values) != 2 or values[0] > values[1])):
                wanted = "two ends, low to high" if ends else "lengths"
                raise ValueError(f"recipe: {name} must be {wanted}, got {given!r}")
            object.__setattr__(self, name, values)


@dataclass(frozen=True)
class Source:
    """An image that pairs are made of, kept on its own voxels so that a pair interpolates it once.

    Attributes:
        name: for the pairs' ``id``.
        data: ``(1, C, *spatial)``, normalised, smoothed for the pairs' spacing.
        regions: ``(1, 1 or 2, *spatial)``: ones, for the view, and the labels if there are any (the most frequent
            in a voxel of the pairs around each voxel). As the operators sample floats: float32 holds labels up to
            2**24, float64 the rest.
        label_type: of the labels of a pair.
        matrix: ``(1, D, D + 1)``, voxel of the pairs' grid to voxel of ``data``.
        shape: of the pairs' grid.
        spacing: of the pairs' grid, mm.
    """

    name: str
    data: Tensor
    regions: Tensor
    label_type: torch.dtype
    matrix: Tensor
    shape: tuple[int, ...]
    spacing: float


def make_sources(
    images: Sequence[Image],
    labels: Sequence[Image | None],
    spec: InputSpec,
    shape: Sequence[int] | None = None,
) -> list[Source]:
    """Prepare images to make pairs of, all on grids of one shape, each centred on its own foreground.

    Args:
        images: one channel each.
        labels: as many; ``None`` where there are none.
        spec: with a spacing, and the normalisation ``percentile`` or ``zscore``.
        shape: of the pairs; ``None``: the largest foreground and ``spec.margin_mm`` (default 16) around it.

    Raises:
        InputError: an image is not what the spec asks for.
        ValueError: the spec has no spacing or another normalisation.
    """
    if spec.spacing is None:
        raise ValueError("synthetic pairs need a spacing in the input spec, got None")
    if spec.normalisation not in ("percentile", "zscore") or spec.channels != 1:
        raise ValueError(
            "synthetic pairs are made with one channel and the normalisation 'percentile' or 'zscore', "
            f"got {spec.channels} and {spec.normalisation!r}"
        )
    ranks = InputSpec(ndim=spec.ndim, spacing=spec.spacing, margin_mm=None)
    centres, extents = [], []
    for image in images:
        whole = prepare(image, ranks)
        start, stop = (torch.tensor(ends, dtype=torch.float64) for ends in foreground_box(whole, ranks))
        centres.append(whole.grid.to_world((start + stop - 1) / 2))
        extents.append(stop - start)
    if shape is None:
        margin = ceil((16.0 if spec.margin_mm is None else spec.margin_mm) / spec.spacing)
        shape = [int(n) + 2 * margin for n in torch.stack(extents).amax(0)]
    sources = []
    for image, own, centre in zip(images, labels, centres, strict=True):
        affine = torch.eye(spec.ndim + 1, dtype=torch.float64)
        affine[:-1, :-1] *= spec.spacing
        affine[:-1, -1] = centre - spec.spacing * (torch.tensor(shape, dtype=torch.float64) - 1) / 2
        grid = Grid(tuple(shape), affine)
        data = smooth(normalise(image.data, ranks)[None], smoothing(image.grid, grid))
        sources.append(
            Source(
                name=image.path.name.split(".")[0] if image.path else "image",
                data=data,
                regions=_regions(image, None if own is None else majority(own, grid, own.grid)),
                label_type=torch.uint8 if own is None else own.data.dtype,
                matrix=matrix(grid, image.grid),
                shape=grid.shape,
                spacing=spec.spacing,
            )
        )
    return sources


class Draw(IntEnum):
    """What is drawn: the first element of every random key, so that no two kinds of draws are alike."""

    TRAINING = 0
    VALIDATION = 1
    REGULARITY = 2
    SAMPLE = 3
    UNCERTAINTY = 4
    AUGMENTATION = 5


def generator_of(seed: int, *key: int) -> torch.Generator:
    """A fresh generator that is a function of seed and key alone, whatever ran before and in whatever process."""
    state = np.random.SeedSequence([seed, *key]).generate_state(2, np.uint32)
    return torch.Generator().manual_seed(int(state[0]) << 32 | int(state[1]))


def synthetic_pair(source: Source, spec: InputSpec, recipe: Recipe, generator: torch.Generator) -> dict[str, Tensor]:
    """Make a pair of images from one.

    The brain is posed and bent by ``a`` to give ``moving``, and by ``a`` after ``flow`` to give ``fixed``; both are
    interpolated once from the source, so neither is blurrier. Before the intensities change,
    ``warp(moving, flow) ≈ fixed``.

    Args:
        source: from :func:`make_sources`.
        spec: the same as there.
        recipe: how far the two differ.
        generator: the only source of randomness.

    Returns:
        ``moving``, ``fixed`` ``(1, *shape)``; ``view`` ``(1, *shape)``, 1 where the moving image reaches; ``flow``
        ``(D, *shape)``, voxels, on the fixed grid into the moving image; ``spacing`` ``(D,)`` mm; and, where the
        source has labels, ``moving_labels`` and ``fixed_labels`` ``(1, *shape)``.
    """
    fields = random_deformations(
        source.shape, source.spacing, recipe.scales_mm, (recipe.anatomy_mm, recipe.displacement_mm), generator
    )
    anatomy, flow = fields[:1], fields[1:]
    both = torch.cat([anatomy, ops.compose(anatomy, flow, bound="replicate")])
    to_source = _then(source.matrix, _random_pose(source.shape, source.spacing, recipe, generator)).float()
    images = ops.warp(source.data, both, bound="replicate", extrapolate="edge", matrix=to_source)
    regions = ops.warp(source.regions, both, order=0, bound="replicate", extrapolate="edge", matrix=to_source)
    pair = {
        "moving": _scan(images[:1], source.spacing, spec, recipe, generator)[0],
        "fixed": _scan(images[1:], source.spacing, spec, recipe, generator)[0],
        "view": regions[0, :1].float(),
        "flow": flow[0],
        "spacing": torch.full((len(source.shape),), source.spacing),
    }
    if regions.shape[1] == 2:
        pair["moving_labels"], pair["fixed_labels"] = regions[:, 1:].to(source.label_type)
    return pair


def random_deformations(
    shape: Sequence[int],
    spacing: float,
    scales_mm: Sequence[float],
    deviations_mm: Sequence[Sequence[float]],
    generator: torch.Generator,
) -> Tensor:
    """Random smooth diffeomorphisms: exponentials of velocities of several scales.

    Args:
        shape: of the grid.
        spacing: of the grid, mm.
        scales_mm: control spacings of the velocities.
        deviations_mm: of each field, the ends between which the deviation of a component is drawn.
        generator: source of randomness.

    Returns:
        ``(len(deviations_mm), D, *shape)``, voxels.
    """
    lattice = control_shape(shape, _COARSE)
    step = _COARSE * spacing
    velocities = torch.zeros(len(deviations_mm), len(shape), *lattice)
    for velocity, (low, high) in zip(velocities, deviations_mm, strict=True):
        deviation = low + (high - low) * _uniform(generator)
        shares = torch.rand(len(scales_mm), generator=generator)
        shares /= shares.norm()
        for share, scale in zip(shares.tolist(), scales_mm, strict=True):
            field = random_field(lattice, scale / step, len(shape), generator)[0]
            velocity += field * (share * deviation / step)
    displacements = ops.integrate(velocities, steps=_SQUARINGS, bound="replicate")
    return spline_field(displacements * _COARSE, shape, _COARSE)


def _regions(image: Image, labels: Tensor | None) -> Tensor:
    view = torch.ones(1, 1, *image.grid.shape)
    if labels is None:
        return view
    dtype = torch.float32 if int(labels.abs().max()) <= 2**24 else torch.float64
    return torch.cat([view.to(dtype), labels.to(dtype)], dim=1)


def _random_pose(shape: Sequence[int], spacing: float, recipe: Recipe, generator: torch.Generator) -> Tensor:
    """Random rotation, scaling, shift and flip about the grid's centre: ``(1, D, D + 1)`` on voxels, float64."""
    ndim = len(shape)
    linear = torch.eye(ndim, dtype=torch.float64)
    for i in range(ndim):
        for j in range(i + 1, ndim):
            angle = np.deg2rad(recipe.rotation_deg) * (2 * _uniform(generator) - 1)
            turn = torch.eye(ndim, dtype=torch.float64)
            turn[i, i] = turn[j, j] = cos(angle)
            turn[i, j], turn[j, i] = -sin(angle), sin(angle)
            linear = turn @ linear
    linear = linear * torch.tensor([exp(recipe.scaling * (2 * _uniform(generator) - 1)) for _ in shape])
    if recipe.flip and _uniform(generator) < 0.5:
        linear[:, 0] *= -1
    shift = torch.tensor([recipe.shift_mm / spacing * (2 * _uniform(generator) - 1) for _ in shape])
    centre = (torch.tensor(shape, dtype=torch.float64) - 1) / 2
    return torch.cat([linear, (centre - linear @ centre + shift)[:, None]], dim=1)[None]


def _then(outer: Tensor, inner: Tensor) -> Tensor:
    """``outer`` after ``inner``, both ``(1, D, D + 1)``."""
    linear = outer[..., :-1] @ inner[..., :-1]
    return torch.cat([linear, outer[..., :-1] @ inner[..., -1:] + outer[..., -1:]], dim=-1)


def _scan(image: Tensor, spacing: float, spec: InputSpec, recipe: Recipe, generator: torch.Generator) -> Tensor:
    """Change the intensities as another scanner would; the background stays what it is."""
    gain = 1 - recipe.contrast * _uniform(generator)
    exponent = exp(recipe.gamma * float(torch.randn((), generator=generator)))
    noise = recipe.noise * _uniform(generator)
    bias = random_field(image.shape[2:], recipe.bias_mm / spacing, 1, generator)
    changed = image.clamp(0, 1).pow(exponent) * bias.mul_(recipe.bias).exp_()
    changed *= gain * _top(image) / _top(changed)  # as the normalisation would: bias does not saturate
    speckle = torch.randn(image.shape, generator=generator).mul_(noise)
    changed += speckle * (image * 10).clamp(0, 1)
    changed.clamp_(0, 1)
    return changed if spec.normalisation == "percentile" else normalise(changed[0], spec)[None]


def _top(image: Tensor) -> float:
    """Robust maximum of the foreground, of every seventh voxel."""
    few = image.flatten()[::7]
    few = few[few > 0.05]
    return float(torch.quantile(few, 0.995)) if few.numel() else 1.0


def _uniform(generator: torch.Generator) -> float:
    return float(torch.rand((), generator=generator))
