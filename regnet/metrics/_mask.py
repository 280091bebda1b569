"""What a mask leaves of a field."""

from torch import Tensor


def inside(field: Tensor, mask: Tensor | None) -> Tensor:
    """The values of ``field`` inside the mask, flat."""
    field = field.detach()
    if mask is None:
        return field.flatten()
    if mask.dim() != field.dim() or mask.shape[1:] != field.shape[1:] or mask.shape[0] not in (1, field.shape[0]):
        raise ValueError(f"mask must be (N or 1, 1, *spatial) for {tuple(field.shape)}: got {tuple(mask.shape)}")
    return field[(mask > 0).expand_as(field)]
