"""How well soft label maps cover each other: 0 is exactly. For label maps and a field, see ``warped_labels``."""

from torch import Tensor

from regnet.losses._dice import SoftDice
from regnet.losses._precision import full_precision
from regnet.losses._weights import check_mask, check_pair, weighted_mean

DENOMINATORS = ("squares", "sums")


@full_precision
def soft_dice(x: Tensor, y: Tensor, mask: Tensor | None = None, denominator: str = "squares") -> Tensor:
    """One minus the mean Dice coefficient of soft label maps.

    Dice = 2 Σ x y / Σ (x² + y²), which is 1 for equal maps even where they are soft; with the denominator "sums",
    2 Σ x y / Σ (x + y), which is 1 for equal hard maps alone. Both are the usual coefficient for hard maps. There is
    no constant: a label absent from both maps of a sample is left out of the mean.

    Args:
        x, y: ``(N, L, *spatial)``, one channel a label, in [0, 1].
        mask: weight of each voxel, >= 0, ``(N or 1, L or 1, *spatial)``. It is not differentiated.
        denominator: "squares" or "sums".

    Returns:
        0-d in [0, 1]: the mean over all labels of all samples; 0 where there is no label to compare. Its gradient is
        exact, and differentiable no further.

    Raises:
        ValueError: the shapes do not fit, or an unknown denominator.

    Source:
        Milletari et al., 3DV 2016; "sums" as Sudre et al., DLMIA 2017.
    """
    x, y, mask = check_pair(x, y, mask, "label maps")
    check_denominator(denominator)
    value: Tensor = SoftDice.apply(x, y, mask, denominator == "squares")
    return value


@full_precision
def cross_entropy(x: Tensor, y: Tensor, mask: Tensor | None = None, smooth: float = 0.01) -> Tensor:
    """Mean of -Σ_l y_l log(smooth + (1 - smooth) x_l), l over the labels and over what is none of them.

    The share of none is 1 - Σ_l x_l, and alike for y. ``smooth`` bounds the value of one voxel at -log(smooth), and
    gives hard maps a gradient.

    Args:
        x: ``(N, L, *spatial)``, the map that is judged, in [0, 1].
        y: the same, the truth.
        mask: weight of each voxel, >= 0, ``(N or 1, 1, *spatial)``. It is not differentiated.
        smooth: in (0, 1).

    Returns:
        0-d in [0, -log(smooth)], in nats, reduced as :func:`regnet.losses.mse`.

    Raises:
        ValueError: the shapes do not fit, or ``smooth`` is not in (0, 1).
    """
    x, y, mask = check_pair(x, y, mask, "label maps")
    check_smooth(smooth)
    check_mask(mask, x[:, :1], "label maps, one channel for all labels of")
    none_x, none_y = 1 - x.sum(1, keepdim=True), 1 - y.sum(1, keepdim=True)
    entropy = -none_y * (smooth + (1 - smooth) * none_x).log()
    for label in range(x.shape[1]):
        part = slice(label, label + 1)
        entropy = entropy - y[:, part] * (smooth + (1 - smooth) * x[:, part]).log()
    return weighted_mean(entropy, mask)


def check_denominator(denominator: str) -> None:
    """ValueError for an unknown one."""
    if denominator not in DENOMINATORS:
        raise ValueError(f"denominator must be one of {', '.join(DENOMINATORS)}: got {denominator!r}")


def check_smooth(smooth: float) -> None:
    """ValueError unless it is in (0, 1)."""
    if not 0 < smooth < 1:
        raise ValueError(f"smooth must be between 0 and 1: got {smooth}")
