"""The affine stage: rigid or affine alignment on the compiled operators."""

from regnet.inference.affine.align import align

__all__ = ["align"]
