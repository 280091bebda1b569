import pytest
import torch

from regnet.data.slices import axial_slice
from regnet.errors import InputError
from regnet.io.image import Image
from regnet.spatial.grid import Grid


def volume(axes, signs):
    """World coordinates as values, on array axes that point along the world's in any order and sense; 1, 2, 3 mm."""
    affine = torch.eye(4, dtype=torch.float64)
    affine[:3, :3] = 0
    for axis, (world, sign) in enumerate(zip(axes, signs, strict=True)):
        affine[world, axis] = sign * (axis + 1)
    affine[:3, 3] = torch.tensor([5.0, -7.0, 11.0])
    grid = Grid((6, 8, 9), affine)
    index = torch.stack(torch.meshgrid(*(torch.arange(n, dtype=torch.float64) for n in grid.shape), indexing="ij"), -1)
    return Image(torch.movedim(grid.to_world(index), -1, 0).float(), grid)


@pytest.mark.parametrize(("axes", "signs"), [((0, 1, 2), (1, 1, 1)), ((2, 0, 1), (-1, 1, -1)), ((1, 2, 0), (1, -1, 1))])
def test_a_slice_stays_where_it_was(axes, signs):
    whole = volume(axes, signs)
    flat = axial_slice(whole, height=2.0)
    index = torch.stack(
        torch.meshgrid(*(torch.arange(n, dtype=torch.float64) for n in flat.grid.shape), indexing="ij"), -1
    )
    torch.testing.assert_close(flat.grid.to_world(index), torch.movedim(flat.data[:2], 0, -1).double())
    heights = flat.data[2]
    assert heights.min() == heights.max()
    middle = float(whole.data[2].min() + whole.data[2].max()) / 2
    assert abs(float(heights.max()) - middle - 2) <= whole.grid.spacing[axes.index(2)] / 2


def test_a_height_outside_and_a_flat_image_are_refused():
    whole = volume((0, 1, 2), (1, 1, 1))
    with pytest.raises(InputError, match="no slice 100 mm"):
        axial_slice(whole, height=100.0)
    with pytest.raises(InputError, match="is 2-D"):
        axial_slice(axial_slice(whole))
