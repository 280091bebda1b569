"""Draw the figures of ``docs/losses.md``: similarities as a slice of a brain is shifted, and what a difference costs.

Usage: ``python tools/make_loss_figures.py [--out docs/figures]``
"""

from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from figures import draw_all, save
from torch import Tensor

from regnet import losses, ops
from regnet.data import sample_path
from regnet.io import read_image

Loss = Callable[[Tensor, Tensor], Tensor]
SIMILARITIES: dict[str, Loss] = {
    "MSE": losses.mse,
    "LNCC, window 9": losses.lncc,
    "NCC, squared": lambda x, y: losses.ncc(x, y, squared=True),
    "NMI": lambda x, y: losses.mutual_information(x, y, normalised=True),
    "MIND": losses.mind,
    "NGF": losses.ngf,
}
ROBUST: dict[str, Loss] = {
    "MSE": losses.mse,
    "MAE": losses.mae,
    "Charbonnier, scale 0.1": lambda x, y: losses.charbonnier(x, y, 0.1),
    "Geman-McClure, scale 0.1": lambda x, y: losses.geman_mcclure(x, y, 0.1),
}
SHIFTS = torch.arange(-20.0, 21.0)  # whole voxels: between them, interpolation blurs and every curve dips


def brain() -> Tensor:
    """An axial slice of the sample brain, ``(1, 1, X, Y)``, highest value 1."""
    volume = read_image(sample_path("mni152_t1")).data[None].float()
    image = volume[..., volume.shape[-1] // 2]
    return image / image.max()


def other_contrast(image: Tensor) -> Tensor:
    """Grey matter brightest, as no monotonous curve makes it: what another sequence may show."""
    return torch.where(image > 0.05, 1 - (2 * image - 1).square(), 0)


def draw_shifts(path: Path) -> None:
    """One panel a contrast; every curve from its least to its greatest value."""
    image = brain()
    figure, panels = plt.subplots(1, 2, figsize=(9, 3), sharey=True, layout="constrained")
    contrasts = (("the same contrast", image), ("another contrast", other_contrast(image)))
    for axes, (title, fixed) in zip(panels, contrasts, strict=True):
        for name, loss in SIMILARITIES.items():
            values = []
            for shift in SHIFTS.tolist():
                flow = torch.zeros(1, 2, *image.shape[2:])
                flow[:, 0] = shift
                values.append(loss(ops.warp(image, flow, bound="replicate"), fixed))
            curve = torch.stack(values)
            axes.plot(SHIFTS, (curve - curve.min()) / (curve.max() - curve.min()), linewidth=1.1, label=name)
        axes.set_title(title, loc="left", fontsize=9)
        axes.set_xlabel("shift, voxels of 2 mm", fontsize=8)
        axes.tick_params(labelsize=7)
    panels[1].legend(fontsize=7, frameon=False, loc="lower right")
    save(figure, path)


def draw_differences(path: Path) -> None:
    """What one difference costs."""
    differences = torch.linspace(-1, 1, 201)
    figure, axes = plt.subplots(figsize=(4.5, 2.6), layout="constrained")
    for name, loss in ROBUST.items():
        costs = [loss(d.expand(1, 1, 2), torch.zeros(1, 1, 2)) for d in differences]
        axes.plot(differences, torch.stack(costs), linewidth=1.1, label=name)
    axes.set_xlabel("difference of intensity", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.legend(fontsize=7, frameon=False)
    save(figure, path)


if __name__ == "__main__":
    draw_all(__doc__, {"similarities": draw_shifts, "robust": draw_differences})
