"""World space: grids, resampling and transforms. RAS millimetres; no files, no ``nn.Module``."""

from regnet.spatial.affine import Affine
from regnet.spatial.composite import Composite, chain, compose
from regnet.spatial.displacement import Displacement
from regnet.spatial.ffd import FFD
from regnet.spatial.grid import Grid, canonical, matrix, orthogonal
from regnet.spatial.invert import Inverse, invert
from regnet.spatial.jacobian import affine_apart, determinant
from regnet.spatial.points import unmap_points
from regnet.spatial.resample import coefficients_, in_view, resample, resample_labels
from regnet.spatial.transform import Transform
from regnet.spatial.vectors import reorient
from regnet.spatial.velocity import Velocity

__all__ = [
    "FFD",
    "Affine",
    "Composite",
    "Displacement",
    "Grid",
    "Inverse",
    "Transform",
    "Velocity",
    "affine_apart",
    "canonical",
    "chain",
    "coefficients_",
    "compose",
    "determinant",
    "in_view",
    "invert",
    "matrix",
    "orthogonal",
    "reorient",
    "resample",
    "resample_labels",
    "unmap_points",
]
