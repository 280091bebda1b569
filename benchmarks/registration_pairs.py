"""The pairs that registrations are judged by: tissue, regions of a mirrored brain, and a field that is known."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import nibabel
import numpy as np
import torch

from regnet import ops
from regnet.data import sample_path
from regnet.io import Image, read_image, read_labels, write_displacement, write_image
from regnet.spatial import Grid, canonical, resample

GREY_FROM, WHITE_FROM, HALF = 71, 98, 127
KNOTS, AMPLITUDE = 20, 6.0  # mm between the control points of the known velocity, and its largest component
NOISE, GAMMA = 0.02, 0.9  # of what the known pair's fixed image is made unlike with


@dataclass(frozen=True)
class Pair:
    """Files of one pair, and what judges it.

    Attributes:
        moving, fixed: the images.
        moving_labels, fixed_labels: label maps on their grids.
        labels: which of them count.
        truth: the map fixed -> moving as a field of ITK's, where it is known.
    """

    name: str
    moving: Path
    fixed: Path
    moving_labels: Path
    fixed_labels: Path
    labels: Sequence[int] = (1, 2)
    truth: Path | None = None


def sample_pair() -> Pair:
    """The 2 mm pair that ships with regnet: grey and white matter."""
    names = ("colin27_t1", "mni152_t1", "colin27_tissue", "mni152_tissue")
    moving, fixed, moving_labels, fixed_labels = (sample_path(name) for name in names)
    return Pair("tissue 2 mm", moving, fixed, moving_labels, fixed_labels)


def tissue_pair(data: Path, folder: Path) -> Pair:
    """Colin27 to MNI152 at 1 mm, the tissue classes made."""
    t1, grey, white = (read_image(data / f"{name}.nii.gz") for name in ("colin27_t1", "mni152_gm", "mni152_wm"))
    moving, fixed = folder / "colin27_tissue.nii.gz", folder / "mni152_tissue.nii.gz"
    write_image(moving, colin_tissue(t1), t1)
    maps = torch.where(white.data > HALF, 2, (grey.data > HALF).to(torch.uint8)).to(torch.uint8)
    write_image(fixed, maps, grey)
    return Pair("tissue", data / "colin27_t1.nii.gz", data / "mni152_t1.nii.gz", moving, fixed)


def mirror_pair(data: Path, folder: Path) -> Pair:
    """Colin27 to its own mirror image: the 108 AAL regions that have a side, left and right exchanged."""
    t1, regions = read_image(data / "colin27_t1.nii.gz"), read_labels(data / "colin27_aal.nii.gz")
    lines = [line.split() for line in (data / "colin27_aal.txt").read_text().splitlines() if line.strip()]
    names = {int(number): name for number, name, *_ in lines}
    number_of = {name: number for number, name in names.items()}
    sided = [number for number, name in names.items() if name.endswith(("_L", "_R"))]
    other = torch.arange(max(names) + 1, dtype=regions.data.dtype)
    for number in sided:
        stem, side = names[number][:-1], names[number][-1]
        other[number] = number_of[stem + {"L": "R", "R": "L"}[side]]
    fixed, labels = folder / "mirror.nii.gz", folder / "mirror_aal.nii.gz"
    write_image(fixed, t1.data.flip(1), t1)
    write_image(labels, other[regions.data.flip(1).long()], regions)
    return Pair("mirror AAL", data / "colin27_t1.nii.gz", fixed, data / "colin27_aal.nii.gz", labels, sided)


def known_pair(data: Path, folder: Path) -> Pair:
    """Colin27 to a Colin27 that was deformed by a smooth diffeomorphism, with other contrast and noise."""
    t1 = read_image(data / "colin27_t1.nii.gz")
    shape, random = t1.grid.shape, torch.Generator().manual_seed(0)
    control = 2 * torch.rand(1, 3, *[(n - 1) // KNOTS + 4 for n in shape], generator=random) - 1
    velocity = ops.ffd(control, shape, KNOTS)
    flow = ops.integrate(velocity * (AMPLITUDE / velocity.abs().max()), 7, bound="replicate")
    fixed, labels, truth = folder / "known.nii.gz", folder / "known_tissue.nii.gz", folder / "truth.nii.gz"
    deformed = ops.warp(t1.data[None].float(), flow)[0]
    top = deformed.max()
    noisy = (deformed / top) ** GAMMA + NOISE * torch.randn(deformed.shape, generator=random) * (deformed > 0)
    write_image(fixed, (noisy.clamp(0, 1) * top).to(torch.uint8), t1)
    tissue = colin_tissue(t1)
    moving_labels = folder / "known_moving_tissue.nii.gz"
    write_image(moving_labels, tissue, t1)
    write_image(labels, ops.warp(tissue[None].float(), flow, order=0)[0].to(torch.uint8), t1)
    write_displacement(truth, flow[0], t1.grid.affine)
    return Pair("known field", data / "colin27_t1.nii.gz", fixed, moving_labels, labels, truth=truth)


def colin_tissue(t1: Image) -> torch.Tensor:
    """1 where it is grey matter, 2 where white."""
    return (t1.data >= GREY_FROM).to(torch.uint8) + (t1.data >= WHITE_FROM).to(torch.uint8)


def stored_otherwise(pair: Pair, out: Path) -> Pair:
    """The moving volume as LAS, 2 x 2 x 2.5 mm, on a turned grid, int16 with slope and intercept."""
    image = read_image(pair.moving)
    straight = canonical(image.grid, (2.0, 2.0, 2.5))
    c, s = math.cos(math.radians(7)), math.sin(math.radians(7))
    turn = torch.tensor([[-c, -s, 0, 0], [-s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=torch.float64)
    middle = torch.tensor([(n - 1) / 2 for n in straight.shape], dtype=torch.float64)
    affine = turn @ straight.affine
    affine[:3, 3] = straight.to_world(middle) - affine[:3, :3] @ middle
    grid = Grid(straight.shape, affine)
    file = nibabel.Nifti1Image(resample(image.data[None], image.grid, grid)[0, 0].numpy(), affine.numpy())
    file.set_data_dtype(np.int16)
    file.set_sform(affine.numpy(), 1)
    file.set_qform(affine.numpy(), 1)
    nibabel.save(file, out)
    return replace(pair, name=f"{pair.name}, stored otherwise", moving=out)


def relooked(pair: Pair, name: str, look: Callable[[torch.Tensor], torch.Tensor], out: Path) -> Pair:
    """The fixed image with other grey values: ``look`` of values in [0, 1], the background as it is."""
    image = read_image(pair.fixed)
    top = float(image.data.max())
    changed = look(image.data / top).clamp(0, 1) * (top - 1) + 1
    write_image(out, torch.where(image.data > 0, changed, 0).round().to(torch.uint8), image)
    return replace(pair, name=f"{pair.name}, {name}", fixed=out)


def mirrored_head(pair: Pair, head: Path, out: Path) -> Pair:
    """The mirror pair with the whole head around the brain; labels and their grids are the brain's."""
    image = read_image(head)
    write_image(out, image.data.flip(1), image)
    return replace(pair, name=f"{pair.name}, whole head", moving=head, fixed=out)
