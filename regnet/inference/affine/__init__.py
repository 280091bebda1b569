"""The affine stage: rigid or affine alignment on the compiled operators."""

from regnet.inference.affine.align import Aligner

__all__ = ["Aligner"]
