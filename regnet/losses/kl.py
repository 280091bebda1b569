"""The divergence of a probabilistic velocity from a smooth prior."""

from typing import Any

from torch import Tensor

from regnet.losses._differences import check_flow
from regnet.losses._precision import as_float, full_precision
from regnet.losses.term import FieldTerm, Tensors, find


@full_precision
def kl_divergence(mean: Tensor, log_variance: Tensor, precision: float = 25.0) -> Tensor:
    """Kullback-Leibler divergence of N(mean, exp(log_variance)) from the prior N(0, (precision L)^-1), per voxel.

    L = degree - adjacency of the grid's neighbours along the axes: a voxel at a face has fewer. Up to a constant,
    1 / (2 V) Σ_d [Σ_p (precision degree_p v_dp - log v_dp) + precision Σ_pq (mean_dp - mean_dq)²], v the variance, V
    the number of voxels, and each pair of neighbours p, q once. It may be negative.

    Args:
        mean, log_variance: ``(N, D, *spatial)``, of a velocity in voxels; log of voxels².
        precision: of the prior, 1 / voxels²; larger is smoother.

    Returns:
        0-d: the mean over samples, in nats per voxel.

    Raises:
        ValueError: the two are not of one shape with one channel per spatial axis, or ``precision`` is not positive.

    Source:
        Dalca et al., Medical Image Analysis 2019.
    """
    mean, log_variance = check_flow(mean), as_float(log_variance)
    if mean.shape != log_variance.shape:
        raise ValueError(
            f"mean and log_variance must be of one shape: got {tuple(mean.shape)} and {tuple(log_variance.shape)}"
        )
    if not precision > 0:
        raise ValueError(f"precision must be positive: got {precision}")
    degree = mean.new_zeros(mean.shape[2:])
    edges = mean.new_zeros(())
    for axis, size in enumerate(mean.shape[2:]):
        for start in (0, 1):
            degree.narrow(axis, start, size - 1).add_(1)
        edges = edges + mean.diff(dim=axis + 2).square().sum()
    spread = (precision * degree * log_variance.exp() - log_variance).sum()
    return (spread + precision * edges) / (2 * len(mean) * degree.numel())


class KL(FieldTerm):
    """:func:`kl_divergence` of the velocity that a probabilistic model draws from: outputs mean and log_variance."""

    choices = ("velocity",)
    unit = "nats per voxel"

    def __init__(self, precision: float = 25.0, **common: Any) -> None:
        super().__init__(**common)
        self.precision = precision

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        return kl_divergence(find(self, outputs, "mean"), find(self, outputs, "log_variance"), self.precision)
