"""How good a registration is, in plain numbers: overlap, surface distance, displacement, regularity."""

from regnet.metrics.displacement import displacement_statistics, endpoint_error
from regnet.metrics.distance import hd95
from regnet.metrics.jacobian import folding_fraction, jacobian_statistics, log_jacobian_determinant, sdlogj
from regnet.metrics.overlap import dice

__all__ = [
    "dice",
    "displacement_statistics",
    "endpoint_error",
    "folding_fraction",
    "hd95",
    "jacobian_statistics",
    "log_jacobian_determinant",
    "sdlogj",
]
