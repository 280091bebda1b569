"""A small registered pair to make pages of."""

import torch

from regnet.report.measures import Measure
from regnet.report.registration import Registration
from regnet.spatial import Grid

SHAPE = (24, 30, 20)


def blob(shape: tuple[int, ...], shift: float = 0.0) -> torch.Tensor:
    """A soft ball, ``(*shape)``, a little off the middle along the first axis."""
    axes = [torch.arange(n, dtype=torch.float32) - (n - 1) / 2 for n in shape]
    axes[0] = axes[0] - shift
    squares = sum(axis**2 for axis in torch.meshgrid(*axes, indexing="ij"))
    return torch.exp(-squares / 40)


def registration(shape: tuple[int, ...] = SHAPE, name: str = "ann", **changes: object) -> Registration:
    """A ball that lies 2 voxels off; the affine flips the first axis."""
    ndim = len(shape)
    flow = torch.zeros(ndim, *shape)
    flow[0] = 2 * blob(shape)
    affine = torch.diag(torch.tensor([-2.0, *[1.5] * (ndim - 1), 1.0], dtype=torch.float64))
    fixed, moving = blob(shape), blob(shape, 2.0)
    labels = {"fixed": fixed > 0.5, "moving": moving > 0.5, "moved": fixed > 0.4}
    before = {"dice": Measure(0.6, {1: 0.6}), "lncc": Measure(0.4), "nmi": Measure(1.1)}
    after = {"dice": Measure(0.9, {1: 0.9}), "lncc": Measure(0.8), "nmi": Measure(1.2), "sdlogj": Measure(0.1)}
    values: dict[str, object] = {
        **{"name": name, "fixed": fixed, "moving": moving, "moved": fixed, "flow": flow, "grid": Grid(shape, affine)},
        **{"mask": fixed > 0.3, "view": torch.ones(shape, dtype=torch.bool), "volume": 1.0},
        "labels": {key: value.to(torch.int16) for key, value in labels.items()},
        **{"before": before, "after": after | {"displacement_mean_mm": Measure(1.0)}},
        "about": {"version": "0.1.0", "seconds": 3.0, "settings": {"refine": 5}, "told": ["registered <in> 3 s"]},
    }
    return Registration(**{**values, **changes})  # type: ignore[arg-type]
