"""Several models in a row, and a pair of images on a coarser grid (back comes a field by ``heads.field.to_grid``)."""

from collections.abc import Sequence
from typing import cast

from torch import Tensor, nn
from torch.nn import functional as F

from regnet.models.model import Model


def check_stages(stages: Sequence[nn.Module], factors: Sequence[int]) -> list[int]:
    """The factors, once it is sure that each has its model.

    Raises:
        ValueError: a stage is no model, or there is not one positive factor a stage (any number for a single one).
    """
    for stage in stages:
        if not isinstance(stage, Model):
            raise ValueError(f"a stage must be a whole model (network and head), got {type(stage).__name__}")
    factors = list(factors) or [1] * len(stages)
    if not stages or len(stages) not in (1, len(factors)) or min(factors) < 1:
        raise ValueError(f"give one positive factor a stage: got {len(stages)} stages and factors {factors}")
    return factors


def shrunk_fields(
    stages: nn.ModuleList, number: int, moving: Tensor, fixed: Tensor, factor: int, **told: Tensor
) -> dict[str, Tensor]:
    """``Model.fields`` of stage ``number`` for the pair, shrunk by ``factor``; a single stage serves every number."""
    stage = cast(Model, stages[number % len(stages)])
    return stage.fields(shrink(moving, factor), shrink(fixed, factor), **told)


def shrink(image: Tensor, factor: int) -> Tensor:
    """The mean over ``factor`` voxels along each axis.

    Args:
        image: ``(N, C, *spatial)``.
        factor: voxels per node.

    Returns:
        ``(N, C, *ceil(spatial / factor))``: node ``k`` covers voxels ``k * factor`` to ``k * factor + factor - 1``,
        the last one those that are left.
    """
    if factor == 1:
        return image
    pool = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[image.ndim - 3]
    window = [min(factor, size) for size in image.shape[2:]]  # torch asks for one that fits
    smaller: Tensor = pool(image, window, factor, ceil_mode=True)
    return smaller
