"""Cascade: one model after the other, each on what the ones before have left."""

from collections.abc import Sequence

from torch import Tensor, nn

from regnet import ops
from regnet.models.compositions.scale import check_stages, shrunk_fields
from regnet.models.heads.field import to_grid
from regnet.models.model import Model


class Cascade(Model):
    """Register with the first model, warp the moving image, register that with the second, and so on.

    Affine, then deformable, in one training; or several deformable steps. The images are warped once for each stage, by
    all maps so far, so that they do not blur.

    Args:
        stages: models, in order. A single one serves all ``factors``, with the same weights.
        factors: at each stage, how many voxels of the images one voxel covers along each axis; default: 1 for all.

    Raises:
        ValueError: a stage is no model, or there is not one positive factor a stage.

    Source:
        Two steps, the first at low resolution: Tian et al., CVPR 2023 (GradICON). Affine first: de Vos et al., Medical
        Image Analysis 2019.
    """

    def __init__(self, stages: Sequence[nn.Module], factors: Sequence[int] = ()) -> None:
        super().__init__()
        self.factors = check_stages(stages, factors)
        self.stages = nn.ModuleList(stages)

    def fields(self, moving: Tensor, fixed: Tensor, **told: Tensor) -> dict[str, Tensor]:
        """``displacement`` of all stages together, and where each has one the ``inverse_displacement``."""
        total: dict[str, Tensor] = {}
        for number, factor in enumerate(self.factors):
            source = moving
            if total:
                source = ops.warp(moving, total["displacement"], bound="replicate", extrapolate="edge")
            fields = shrunk_fields(self.stages, number, source, fixed, factor, **told)
            names = ("displacement", "inverse_displacement")
            step = {name: to_grid(fields[name], fixed.shape[2:], factor) for name in names if name in fields}
            total = _after(total, step) if number else step
        return total


def _after(total: dict[str, Tensor], step: dict[str, Tensor]) -> dict[str, Tensor]:
    """The maps of all stages so far and of one more, which comes nearest to the fixed image."""
    maps = {"displacement": ops.compose(total["displacement"], step["displacement"], bound="replicate")}
    name = "inverse_displacement"
    if name in total and name in step:
        maps[name] = ops.compose(step[name], total[name], bound="replicate")
    return maps
