"""Heads: features in, deformation out."""

from regnet.models.heads.affine import AffineHead
from regnet.models.heads.displacement import DisplacementHead
from regnet.models.heads.probabilistic import ProbabilisticVelocityHead
from regnet.models.heads.spline import SplineHead
from regnet.models.heads.spline_velocity import SplineVelocityHead
from regnet.models.heads.velocity import VelocityHead

__all__ = [
    "AffineHead",
    "DisplacementHead",
    "ProbabilisticVelocityHead",
    "SplineHead",
    "SplineVelocityHead",
    "VelocityHead",
]
