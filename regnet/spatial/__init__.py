"""World space: grids, resampling and transforms. RAS millimetres; no files, no ``nn.Module``."""

from .grid import Grid, canonical, matrix
from .resample import in_view, resample, resample_labels
from .transform import Transform

__all__ = ["Grid", "Transform", "canonical", "in_view", "matrix", "resample", "resample_labels"]
