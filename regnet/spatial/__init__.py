"""World space: grids, resampling and transforms. RAS millimetres; no files, no ``nn.Module``."""

from regnet.spatial.grid import Grid, canonical, matrix
from regnet.spatial.resample import in_view, resample, resample_labels
from regnet.spatial.transform import Transform, compose

__all__ = ["Grid", "Transform", "canonical", "compose", "in_view", "matrix", "resample", "resample_labels"]
