"""Instance optimisation finds known maps, respects the field of view, and starts where it is told."""

import pytest
import torch

from regnet.data.spec import InputSpec
from regnet.inference import refine as module
from regnet.inference.refine import refine
from regnet.spatial import Displacement, Transform

from .heads import centred, head, points, shift


def spec(ndim: int) -> InputSpec:
    return InputSpec(ndim=ndim, margin_mm=None)


def smooth_velocity(ndim: int, shape: tuple[int, ...]) -> Transform:
    grid = centred(shape)
    at = points(grid).movedim(-1, 0)[:ndim].float()
    return Displacement(torch.sin(at.flip(0) / 5 + 1), grid)


@pytest.mark.parametrize(("shape", "mm"), [((34, 40), (1.5, -2.0)), ((30, 34, 28), (1.5, -2.0, 1.0))])
def test_a_shift_is_found_and_points_from_fixed_to_moving(shape: tuple[int, ...], mm: tuple[float, ...]) -> None:
    grid = centred(shape)
    fixed, moving = head(grid, radius=10), head(grid, radius=10, there=shift(*(-x for x in mm)))
    found = refine(moving, fixed, spec(len(shape)), 60, learning_rate=0.15).displacement_mm()
    assert found.shape[1:] == grid.shape
    inside = points(grid).norm(dim=-1) < 8
    for axis, expected in enumerate(mm):
        assert float(found[axis][inside].mean()) == pytest.approx(expected, abs=0.35)


def test_the_same_map_is_found_when_the_moving_image_is_stored_turned_and_coarser() -> None:
    fixed_grid, turned = centred((30, 34, 28)), centred((26, 30, 22), (1.4, 1.3, 1.5), turn=7)
    fixed = head(fixed_grid, radius=10)
    there = shift(-1.5, 1.0, 0.0)
    straight = refine(head(fixed_grid, 10, there), fixed, spec(3), 30)
    oblique = refine(head(turned, 10, there), fixed, spec(3), 30)
    inside = points(fixed_grid).norm(dim=-1) < 9
    difference = (straight.displacement_mm() - oblique.displacement_mm()).norm(dim=0)[inside]
    assert float(difference.mean()) < 0.2


def test_what_the_moving_image_does_not_show_draws_nothing() -> None:
    # The moving image ends at x = 2 mm: voxels beyond have no partner, and must not be pulled towards the edge.
    grid = centred((34, 40))
    part = grid.window((0, 0), (19, 40))
    fixed, moving = head(grid, radius=10), head(part, radius=10)
    found = refine(moving, fixed, spec(2), 40).displacement_mm()
    assert float(found.norm(dim=0)[points(grid).norm(dim=-1) < 10].max()) < 0.75


def test_a_network_s_velocity_is_where_it_starts() -> None:
    grid = centred((26, 30))
    velocity = smooth_velocity(2, grid.shape)
    image = head(grid, radius=8)
    found = refine(image, image, spec(2), 2, velocity, learning_rate=0.0)
    expected = module.ops.integrate(velocity.flow[None], steps=7, bound="replicate")[0]
    torch.testing.assert_close(found.flow, expected, atol=1e-2, rtol=0)


def test_a_given_map_stays_under_the_optimised_one() -> None:
    grid = centred((26, 30))
    given = Displacement(smooth_velocity(2, grid.shape).flow * 0.3, grid)
    image = head(grid, radius=8)
    found = refine(image, image, spec(2), 2, start=given, learning_rate=0.0)
    torch.testing.assert_close(found.flow, given.flow, atol=1e-5, rtol=0)


def test_each_level_ends_more_alike_than_it_began() -> None:
    grid = centred((30, 34, 28))
    losses: list[float] = []
    refine(
        head(grid, 10, shift(1.5, 0.0, -1.0)),
        head(grid, 10),
        spec(3),
        20,
        progress=lambda done, total, loss: losses.append(loss),
    )
    coarse, fine = losses[:12], losses[12:]
    assert len(losses) == 20
    assert coarse[-1] < coarse[0]
    assert fine[-1] < fine[0]


@pytest.mark.parametrize("steps", [1, 2, 7, 100])
@pytest.mark.parametrize("shape", [(181, 217, 181), (64, 48), (9, 30, 30), (512, 512, 40)])
def test_the_levels_share_out_all_steps_and_stay_affordable(steps: int, shape: tuple[int, ...]) -> None:
    levels = module._schedule(centred(shape), steps)
    assert sum(count for _, count in levels) == steps
    assert [spacing for spacing, _ in levels] == sorted((spacing for spacing, _ in levels), reverse=True)
    assert centred(shape).with_spacing(levels[-1][0]).voxels <= 1.2e6


def test_no_step_at_all_is_refused() -> None:
    image = head(centred((26, 30)), radius=8)
    with pytest.raises(ValueError, match="at least 1 step"):
        refine(image, image, spec(2), 0)


def test_a_loss_that_is_not_finite_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "diffusion", lambda flow: flow.sum() * float("nan"))
    image = head(centred((26, 30)), radius=8)
    with pytest.raises(ValueError, match="diverged"):
        refine(image, image, spec(2), 3)
