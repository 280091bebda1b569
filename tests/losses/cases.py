"""Every loss that compares two images, and every one of a field, for the laws that all of them obey."""

import torch
from torch import Tensor

from regnet import losses

WIDE = (-3.0, 4.0)
"""A range that the images of :func:`pair` do not reach, so that no voxel sits on a kink of the histogram."""

PAIRS = {
    "mse": losses.mse,
    "mae": losses.mae,
    "charbonnier": lambda x, y, mask=None: losses.charbonnier(x, y, 0.1, mask),
    "geman_mcclure": lambda x, y, mask=None: losses.geman_mcclure(x, y, 0.1, mask),
    "lncc": lambda x, y, mask=None: losses.lncc(x, y, 3, mask),
    "lncc, gaussian": lambda x, y, mask=None: losses.lncc(x, y, 3, mask, kernel="gaussian"),
    "lncc, signed": lambda x, y, mask=None: losses.lncc(x, y, 3, mask, squared=False),
    "ncc": losses.ncc,
    "ncc, squared": lambda x, y, mask=None: losses.ncc(x, y, mask, squared=True),
    "mi": lambda x, y, mask=None: losses.mutual_information(x, y, 9, mask, WIDE, WIDE),
    "nmi": lambda x, y, mask=None: losses.mutual_information(x, y, 9, mask, WIDE, WIDE, normalised=True),
    "mind": lambda x, y, mask=None: losses.mind(x, y, 1, 1, mask),
    "ngf": lambda x, y, mask=None: losses.ngf(x, y, 1.0, [1.0, 2.0, 3.0][: x.dim() - 2], mask),
    "soft_dice": losses.soft_dice,
    "soft_dice, sums": lambda x, y, mask=None: losses.soft_dice(x, y, mask, "sums"),
    "cross_entropy": lambda x, y, mask=None: losses.cross_entropy(x / x.shape[1], y / y.shape[1], mask),
}

FIELDS = {
    "diffusion": losses.diffusion,
    "diffusion, l1": lambda u, size=1.0, mask=None: losses.diffusion(u, size, mask, "l1"),
    "bending_energy": losses.bending_energy,
    "total_variation": lambda u, size=1.0, mask=None: losses.total_variation(u, size, mask, 0.1),
    "elastic": lambda u, size=1.0, mask=None: losses.elastic(u, size, mask, 1.0, 0.7),
}
"""Of a field, the size of its voxels, and a mask."""

MASKED_FIELDS = FIELDS | {
    "folding_penalty": lambda u, size=1.0, mask=None: losses.folding_penalty(u, mask, 1.0),
    "log_jacobian": lambda u, size=1.0, mask=None: losses.log_jacobian(u, mask),
    "inverse_consistency": lambda u, size=1.0, mask=None: losses.inverse_consistency(_there(u), u, size, mask),
    "gradicon": lambda u, size=1.0, mask=None: losses.gradicon(_there(u), u, size, mask),
}
"""The same for all that take a mask."""

SHAPES = [(2, 2, 4, 3), (1, 2, 3, 4, 2)]


def pair(shape: tuple[int, ...], dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Two images that share something, in [0, 1]."""
    generator = torch.Generator().manual_seed(len(shape))
    x, y = (torch.rand(shape, generator=generator, dtype=torch.float64) for _ in range(2))
    return x.to(dtype), (0.4 * x + 0.6 * y).to(dtype)


def weights(shape: tuple[int, ...]) -> Tensor:
    """A weight for each voxel, ``(N, 1, *spatial)``."""
    generator = torch.Generator().manual_seed(3)
    return torch.rand((shape[0], 1, *shape[2:]), generator=generator, dtype=torch.float64)


def field(shape: tuple[int, ...]) -> Tensor:
    """Some voxels long, different everywhere, ``(N, D, *spatial)`` float64."""
    generator = torch.Generator().manual_seed(5)
    return 1.3 * torch.rand((shape[0], len(shape) - 2, *shape[2:]), generator=generator, dtype=torch.float64) - 0.6


def _there(backward: Tensor) -> Tensor:
    """A field that some other one would undo."""
    return torch.where(backward.isfinite(), 0.3 * backward, 0).detach()
