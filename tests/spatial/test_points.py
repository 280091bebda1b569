"""Points against the direction of a map, and vectors that turn with it."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from regnet.errors import InputError
from regnet.spatial import Affine, Composite, Displacement, Velocity, chain, coefficients_, reorient, unmap_points
from regnet.spatial.resample import warp_image

from .worlds import fixed_grid, moving_grid, rotation, smooth_flow, waves


def maps(ndim):
    grid = fixed_grid(ndim)
    matrix = torch.eye(ndim + 1, dtype=torch.float64)
    matrix[:-1, :-1] = rotation(ndim, 20.0) * 1.1
    matrix[:-1, -1] = torch.tensor([3.0, -2.0, 1.0])[:ndim]
    affine, field = Affine(matrix), Displacement(smooth_flow(grid, 3.0), grid)
    return {
        "affine": affine,
        "field": field,
        "velocity": Velocity(smooth_flow(grid, 3.0), grid),
        "chain": Composite((field, affine)),
    }


def inner(ndim):
    grid = fixed_grid(ndim)
    share = torch.rand(40, ndim, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return grid.to_world((0.2 + 0.6 * share) * (torch.tensor(grid.shape) - 1))


@pytest.mark.parametrize("ndim", [2, 3])
@pytest.mark.parametrize("name", ["affine", "field", "velocity", "chain"])
def test_a_point_is_found_again(ndim, name):
    transform, points = maps(ndim)[name], inner(ndim)
    found, missed = unmap_points(transform, transform.map_points(points))
    assert float(missed.max()) < 2e-5
    assert float((found - points).norm(dim=-1).max()) < 1e-4


def test_what_has_no_source_says_how_far_it_is_missed():
    """x -> |x| along the first axis about 8: nothing is mapped below."""
    grid = fixed_grid(3)
    voxels = torch.arange(24.0)
    flow = torch.zeros(3, *grid.shape)
    flow[0] = ((voxels - 12).abs() + 12 - voxels)[:, None, None]
    aim = grid.to_world(torch.tensor([[18.0, 9, 8], [9.0, 9, 8]]))
    _, missed = unmap_points(Displacement(flow, grid), aim)
    assert float(missed[0]) < 1e-4
    assert float(missed[1]) == pytest.approx(3 * grid.spacing[0], rel=0.05)


def test_no_points_at_all_are_none():
    found, missed = unmap_points(maps(3)["chain"], torch.zeros(0, 3))
    assert found.shape == (0, 3) and missed.shape == (0,)


@pytest.mark.parametrize("ndim", [2, 3])
def test_an_arrow_between_two_points_stays_one(ndim):
    """To first order: the arrow from x to x + h v is the moving image's from T(x) to T(x + h v), carried back."""
    transform, grid = maps(ndim)["chain"], fixed_grid(ndim)
    middle = torch.tensor([n // 2 for n in grid.shape])
    x = grid.to_world(middle[None].double())
    arrow = torch.tensor([[0.4, -0.3, 0.2]], dtype=torch.float64)[:, :ndim]
    step = 1e-3
    there = (transform.map_points(x + step * arrow) - transform.map_points(x - step * arrow)) / (2 * step)
    vectors = there[0].reshape(ndim, *[1] * ndim).expand(ndim, *grid.shape).float()
    turned = reorient(vectors, transform, grid)
    here = turned[(slice(None), *middle.tolist())]
    torch.testing.assert_close(here, arrow[0].float(), atol=0.02, rtol=0)
    kept = reorient(vectors, transform, grid, "rotation").norm(dim=0)
    torch.testing.assert_close(kept, vectors.norm(dim=0), atol=1e-4, rtol=0)


@pytest.mark.parametrize("ndim", [2, 3])
@pytest.mark.parametrize("order", range(8))
def test_coefficients_in_place_are_those_of_the_warp(ndim, order, monkeypatch):
    monkeypatch.setattr(sys.modules[warp_image.__module__], "_BLOCK", 200)
    grid, other = fixed_grid(ndim), moving_grid(ndim)
    image = torch.cat([waves(other), torch.rand(1, 1, *other.shape)], dim=1)
    flow = smooth_flow(grid)[None]
    expected = warp_image(image, flow, other, grid, order, -1.0)
    found = warp_image(coefficients_(image.clone(), order), flow, other, grid, order, -1.0, prefilter=False)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("ndim", [2, 3])
def test_slabs_are_the_grid_in_parts(ndim):
    grid = fixed_grid(ndim)
    slabs = list(grid.slabs(24 * 30 * 4 if ndim == 3 else 24 * 4))
    assert len(slabs) > 4 and sum(slab.shape[-1] for slab in slabs) == grid.shape[-1]
    start = 0
    for slab in slabs:
        assert slab.shape[:-1] == grid.shape[:-1]
        corner = grid.to_world(torch.tensor([0.0] * (ndim - 1) + [start], dtype=torch.float64))
        torch.testing.assert_close(slab.affine[:-1, -1], corner)
        start += slab.shape[-1]


def test_points_are_taken_as_tensors_arrays_and_lists() -> None:
    grid = fixed_grid(3)
    field = Displacement(smooth_flow(grid, 2.0), grid)
    shift = Affine(torch.tensor([[1.0, 0, 0, 5], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]))
    points = [[3, 4.5, -5], [0, 1, 2]]
    array = np.array(points, dtype=np.float32)[::-1]
    for transform in (field, shift, chain([field, shift]), Velocity(smooth_flow(grid, 1.0), grid)):
        there = transform.map_points(torch.tensor(points))
        assert torch.equal(transform.map_points(points), there)
        assert torch.equal(transform.map_points(array), there.flip(0))
        assert torch.equal(unmap_points(transform, points)[0], unmap_points(transform, torch.tensor(points))[0])
        for wrong in ([1.0, 2.0], [[1.0, 2, 3], [4, 5]], "abc", 3.0, None):
            with pytest.raises(ValueError, match="points"):
                transform.map_points(wrong)
        with pytest.raises(ValueError, match=r"an image is a tensor \(N, C, \*spatial\)"):
            transform.apply(np.zeros(grid.shape), grid, grid)
    assert torch.equal(grid.to_voxel(points), grid.to_voxel(torch.tensor(points)))


def test_a_saved_map_is_not_replaced_unless_told_so(tmp_path: Path) -> None:
    Affine.identity(3).save(tmp_path / "a.mat")
    with pytest.raises(InputError, match="exists already"):
        Affine.identity(3).save(tmp_path / "a.mat")
    Affine.identity(3).save(tmp_path / "a.mat", overwrite=True)
