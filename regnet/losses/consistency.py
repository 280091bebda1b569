"""Whether the map there and the map back undo each other."""

from torch import Tensor

from regnet import ops
from regnet.losses._differences import VoxelSize, check_flow, check_voxel_size
from regnet.losses._precision import full_precision
from regnet.losses._weights import check_field, weighted_mean
from regnet.losses.regularity import diffusion
from regnet.losses.term import FieldTerm, Tensors, find


@full_precision
def inverse_consistency(
    flow: Tensor, backward: Tensor, voxel_size: VoxelSize = 1.0, mask: Tensor | None = None
) -> Tensor:
    """Mean squared length of r(p) = backward(p) + flow(p + backward(p)): 0 where flow undoes backward. In mm².

    Args:
        flow: ``(N, D, *spatial)``, voxels, from fixed to moving.
        backward: the same on the same grid, from moving to fixed. Beyond the faces a field goes on as at its border.
        voxel_size: mm; one, one per axis, or ``(N or 1, D)``.
        mask: weight of each voxel p, >= 0, ``(N or 1, 1, *spatial)``. It is not differentiated.

    Returns:
        0-d, >= 0, reduced as :func:`regnet.losses.mse`.

    Raises:
        ValueError: the fields are not of one shape with one channel per spatial axis, or another does not fit.

    Source:
        Christensen and Johnson, IEEE Transactions on Medical Imaging 2001; Greer et al., ICCV 2021.
    """
    residual, mask = _residual(flow, backward, mask)
    size = check_voxel_size(voxel_size, residual)
    lengths = (residual * size.view(*size.shape, *[1] * (residual.dim() - 2))).square().sum(1, keepdim=True)
    return weighted_mean(lengths, mask)


@full_precision
def gradicon(flow: Tensor, backward: Tensor, voxel_size: VoxelSize = 1.0, mask: Tensor | None = None) -> Tensor:
    """Mean of Σ_ij (∂r_i / ∂x_j)², r the residual of :func:`inverse_consistency`: no unit.

    It asks that r changes little, not that it is small, which is easier to learn and regularises the maps as well.
    Arguments, reduction and errors as of :func:`inverse_consistency`; the differences are those of
    :func:`regnet.losses.diffusion`.

    Source:
        Tian et al., CVPR 2023.
    """
    residual, mask = _residual(flow, backward, mask)
    return diffusion(residual, voxel_size, mask)


def _residual(flow: Tensor, backward: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
    flow = check_flow(flow)
    if flow.shape != backward.shape:
        raise ValueError(f"both fields must be of one shape: got {tuple(flow.shape)} and {tuple(backward.shape)}")
    backward, mask = check_field(backward, mask)
    return ops.compose(flow, backward, bound="replicate"), mask


class InverseConsistency(FieldTerm):
    """:func:`inverse_consistency` of the model's answers to the pair and to the pair exchanged."""

    choices = ("displacement",)
    swaps = True
    unit = "mm²"

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        flow, size = self.field(outputs, batch)
        return inverse_consistency(flow, find(self, outputs, "swapped_displacement"), size)


class GradICON(FieldTerm):
    """:func:`gradicon` of the model's answers to the pair and to the pair exchanged."""

    choices = ("displacement",)
    swaps = True
    unit = "none: mm per mm"

    def forward(self, outputs: Tensors, batch: Tensors) -> Tensor:
        flow, size = self.field(outputs, batch)
        return gradicon(flow, find(self, outputs, "swapped_displacement"), size)
