"""The determinant of a map with affine parts."""

import pytest
import torch

from regnet import ops
from regnet.spatial import Affine, Displacement, Velocity, affine_apart, chain, determinant

from .worlds import fixed_grid, smooth_flow


@pytest.mark.parametrize("ndim", [2, 3])
def test_affine_parts_count_exactly_wherever_they_stand(ndim: int) -> None:
    grid = fixed_grid(ndim)
    field, velocity = Displacement(smooth_flow(grid, 1.0), grid), Velocity(smooth_flow(grid, 0.5), grid)
    matrix = torch.eye(ndim + 1, dtype=torch.float64)
    matrix[:-1] += 0.1 * torch.rand(ndim, ndim + 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    one, other = Affine(matrix), Affine(torch.linalg.inv(matrix @ matrix))
    whole = chain([one, field, other, velocity, one])
    deformation, affine = affine_apart(whole)
    assert deformation is not None
    world = grid.to_world(2 + 3 * torch.rand(20, ndim, generator=torch.Generator().manual_seed(2)))
    assert torch.allclose(affine.map_points(deformation.map_points(world)), whole.map_points(world), atol=1e-4)
    inner = (slice(None), *[slice(3, -3)] * ndim)
    expected = ops.jacobian_determinant(whole.on(grid).flow[None])[0]
    assert torch.allclose(determinant(whole, grid)[inner], expected[inner], atol=1e-3)
    volume = float(torch.linalg.det(one.matrix @ other.matrix @ one.matrix))
    assert torch.allclose(determinant(whole, grid), volume * determinant(whole, grid, total=False))


@pytest.mark.parametrize("scale", [1e-9, -1.0, 1e6])
def test_the_determinant_of_an_affine_map_is_that_of_its_matrix(scale: float) -> None:
    grid = fixed_grid(3)
    affine = Affine(torch.diag(torch.tensor([scale, scale, scale, 1.0], dtype=torch.float64)))
    still = Displacement.identity(grid)
    for transform in (affine, chain([affine, still]), chain([still, affine])):
        values = determinant(transform, grid)
        assert torch.allclose(values / scale**3, torch.ones_like(values), rtol=1e-5)
        assert torch.equal(determinant(transform, grid, total=False), torch.ones_like(values))
