"""Spline sampling and flow algebra: pure functions over the compiled core.

Images are ``(N, C, *spatial)``; fields and coordinates ``(N, D, *spatial)`` in voxels, channel ``d`` along spatial
axis ``d``. Fields live on the fixed grid and point into the moving image.
"""

from regnet.ops.box import box_sum
from regnet.ops.ffd import ffd
from regnet.ops.fields import compose, identity, integrate, invert, warp
from regnet.ops.jacobian import jacobian, jacobian_determinant
from regnet.ops.labels import warp_labels
from regnet.ops.operator import SamplingOperator
from regnet.ops.prefilter import prefilter
from regnet.ops.resize import resize, resize_flow, restrict
from regnet.ops.sampling import count, grad, hess, pull, push
from regnet.ops.spline import Spline
from regnet.ops.torch_compat import grid_sample, grid_sample_adjoint

__all__ = [
    "SamplingOperator",
    "Spline",
    "box_sum",
    "compose",
    "count",
    "ffd",
    "grad",
    "grid_sample",
    "grid_sample_adjoint",
    "hess",
    "identity",
    "integrate",
    "invert",
    "jacobian",
    "jacobian_determinant",
    "prefilter",
    "pull",
    "push",
    "resize",
    "resize_flow",
    "restrict",
    "warp",
    "warp_labels",
]
