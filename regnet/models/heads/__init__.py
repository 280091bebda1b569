"""Heads: features in, deformation out."""

from regnet.models.heads.displacement import DisplacementHead
from regnet.models.heads.velocity import VelocityHead

__all__ = ["DisplacementHead", "VelocityHead"]
