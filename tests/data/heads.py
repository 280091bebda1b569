"""A head made of formulas, so that it can be stored in any way without interpolation."""

import nibabel as nib
import numpy as np
import torch

from regnet.io.image import Image
from regnet.spatial.grid import Grid

RADII = (30.0, 36.0, 24.0)  # mm


def head_at(world):
    """Grey values at RAS points ``(..., D)``: an ellipsoid with smooth structures, off centre, 0 outside."""
    ndim = world.shape[-1]
    x = world - torch.tensor([3.0, -4.0, 5.0], dtype=world.dtype)[:ndim]
    radius = (x / torch.tensor(RADII, dtype=world.dtype)[:ndim]).norm(dim=-1)
    inside = torch.sigmoid((1 - radius) * 12)
    inside = torch.where(inside < 1e-3, 0.0, inside)
    return inside * (60 + 25 * torch.sin(x[..., 0] / 7) * torch.cos(x[..., 1] / 9) + 15 * torch.sin(x[..., -1] / 8))


def points(grid):
    """World points of all voxels ``(*shape, D)``."""
    index = torch.meshgrid(*(torch.arange(n, dtype=torch.float64) for n in grid.shape), indexing="ij")
    return grid.to_world(torch.stack(index, -1))


def grid_of(spacing, signs=(1, 1, 1), turn=0.0, half=(40.0, 46.0, 34.0), ndim=3):
    """A grid centred on the world's origin that reaches ``half`` mm, its axes flipped and turned (about the last)."""
    spacing = np.broadcast_to(spacing, 3)[:ndim]
    shape = tuple(int(np.ceil(2 * h / s)) for h, s in zip(half[:ndim], spacing, strict=True))
    linear = np.diag(np.array(signs[:ndim]) * spacing)
    angle = np.deg2rad(turn)
    rotation = np.eye(ndim)
    rotation[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    affine = np.eye(ndim + 1)
    affine[:ndim, :ndim] = rotation @ linear
    affine[:ndim, ndim] = -affine[:ndim, :ndim] @ ((np.array(shape) - 1) / 2)
    return Grid(shape, torch.from_numpy(affine))


def head(grid):
    return Image(head_at(points(grid)).float()[None], grid)


def labels_of(image):
    """1 where the head is grey, 2 where it is bright."""
    data = torch.where(image.data > 65, 2, torch.where(image.data > 20, 1, 0)).to(torch.uint8)
    return Image(data, image.grid)


def save(path, image, slope=None):
    """Write as float32, or as int16 with this slope and an intercept."""
    data = image.data[0].numpy()
    affine = np.eye(4)
    ndim = image.grid.ndim
    affine[:ndim, :ndim] = image.grid.affine[:ndim, :ndim].numpy()
    affine[:ndim, 3] = image.grid.affine[:ndim, ndim].numpy()
    if slope is None:
        nib.save(nib.Nifti1Image(data, affine), path)
        return path
    stored = nib.Nifti1Image(np.rint((data + 1024) / slope).astype(np.int16), affine)
    stored.header.set_slope_inter(slope, -1024)
    nib.save(stored, path)
    return path
