"""Instance optimisation finds known maps, respects the field of view, and starts where it is told."""

import pytest
import torch

from regnet import ops
from regnet.data.spec import InputSpec
from regnet.inference.refine import refine
from regnet.inference.refine.level import Level, Pair, schedule
from regnet.inference.refine.maps import ControlMap, VelocityMap
from regnet.io import Image
from regnet.losses import LNCC, MSE, BendingEnergy, Diffusion, Objective
from regnet.spatial import FFD, Displacement, Transform, Velocity

from .heads import centred, head, points, shift


def spec(ndim: int) -> InputSpec:
    return InputSpec(ndim=ndim, margin_mm=None)


def smooth_velocity(ndim: int, shape: tuple[int, ...]) -> Transform:
    grid = centred(shape)
    at = points(grid).movedim(-1, 0)[:ndim].float()
    return Displacement(torch.sin(at.flip(0) / 5 + 1), grid)


@pytest.mark.parametrize("on", ["velocity", "control"])
@pytest.mark.parametrize(("shape", "mm"), [((34, 40), (1.5, -2.0)), ((30, 34, 28), (1.5, -2.0, 1.0))])
def test_a_shift_is_found_and_points_from_fixed_to_moving(
    shape: tuple[int, ...], mm: tuple[float, ...], on: str
) -> None:
    grid = centred(shape)
    fixed, moving = head(grid, radius=10), head(grid, radius=10, there=shift(*(-x for x in mm)))
    found = refine(moving, fixed, spec(len(shape)), 60, learning_rate=0.15, on=on).on(grid).displacement_mm()
    assert found.shape[1:] == grid.shape
    inside = points(grid).norm(dim=-1) < 8
    for axis, expected in enumerate(mm):
        assert float(found[axis][inside].mean()) == pytest.approx(expected, abs=0.35)


def test_the_same_map_is_found_when_the_moving_image_is_stored_turned_and_coarser() -> None:
    fixed_grid, turned = centred((30, 34, 28)), centred((26, 30, 22), (1.4, 1.3, 1.5), turn=7)
    fixed = head(fixed_grid, radius=10)
    there = shift(-1.5, 1.0, 0.0)
    straight = refine(head(fixed_grid, 10, there), fixed, spec(3), 30).on(fixed_grid)
    oblique = refine(head(turned, 10, there), fixed, spec(3), 30).on(fixed_grid)
    inside = points(fixed_grid).norm(dim=-1) < 9
    difference = (straight.displacement_mm() - oblique.displacement_mm()).norm(dim=0)[inside]
    assert float(difference.mean()) < 0.2


def test_what_the_moving_image_does_not_show_draws_nothing() -> None:
    # The moving image ends at x = 2 mm: voxels beyond have no partner, and must not be pulled towards the edge.
    grid = centred((34, 40))
    part = grid.window((0, 0), (19, 40))
    fixed, moving = head(grid, radius=10), head(part, radius=10)
    found = refine(moving, fixed, spec(2), 40).on(grid).displacement_mm()
    assert float(found.norm(dim=0)[points(grid).norm(dim=-1) < 10].max()) < 0.75


def test_a_network_s_velocity_is_where_it_starts() -> None:
    grid = centred((26, 30))
    velocity = smooth_velocity(2, grid.shape)
    image = head(grid, radius=8)
    found = refine(image, image, spec(2), 2, velocity, learning_rate=0.0).on(grid)
    expected = ops.integrate(velocity.flow[None], steps=7, bound="replicate")[0]
    inside = (slice(None), slice(3, -3), slice(3, -3))  # the velocity is kept on longer voxels
    torch.testing.assert_close(found.flow[inside], expected[inside], atol=0.04, rtol=0)


def test_a_given_map_stays_under_the_optimised_one() -> None:
    grid = centred((26, 30))
    given = Displacement(smooth_velocity(2, grid.shape).flow * 0.3, grid)
    image = head(grid, radius=8)
    found = refine(image, image, spec(2), 2, start=given, learning_rate=0.0).on(grid)
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
    levels = schedule(centred(shape), steps)
    assert sum(count for _, count in levels) == steps
    assert [spacing for spacing, _ in levels] == sorted((spacing for spacing, _ in levels), reverse=True)
    assert centred(shape).with_spacing(levels[-1][0]).voxels <= 2.9e6


def test_no_step_at_all_is_refused() -> None:
    image = head(centred((26, 30)), radius=8)
    with pytest.raises(ValueError, match="at least 1 step"):
        refine(image, image, spec(2), 0)


def test_two_channels_are_compared_each_with_its_own() -> None:
    grid = centred((34, 40))
    fixed, moving = head(grid, radius=10), head(grid, radius=10, there=shift(-1.5, 0.0))
    two = [Image(torch.cat([image.data, image.data**2]), grid) for image in (moving, fixed)]
    found = refine(*two, InputSpec(ndim=2, channels=2, margin_mm=None), 40, learning_rate=0.15)
    shifted = found.on(grid).displacement_mm()[0]
    assert float(shifted[points(grid).norm(dim=-1) < 8].mean()) == pytest.approx(1.5, abs=0.35)


def loss_at(pair: Pair, found: Transform, objective: Objective) -> float:
    """Of a velocity or control points, at the finest level."""
    level = Level.of(pair, schedule(pair.fixed.grid, 10)[-1][0], "cpu")
    kind, part = (ControlMap, found) if isinstance(found, FFD) else (VelocityMap, None)
    if part is None:
        assert isinstance(found, Velocity)
        part = Displacement(found.velocity, found.grid)
    deformation = kind(level.grid)
    return float(level.loss(deformation.fields(deformation.numbers([part])), objective))


@pytest.mark.parametrize("on", ["velocity", "control"])
@pytest.mark.parametrize("learning_rate", [0.15, 30.0])
def test_the_loss_of_what_comes_back_is_never_above_that_of_the_start(on: str, learning_rate: float) -> None:
    grid = centred((34, 40))
    pair = Pair(head(grid, 10, shift(1.0, -1.0)), head(grid, 10), spec(2))
    objective = Objective({"similarity": LNCC(window=5), "smoothness": Diffusion(weight=0.5, on=on)})
    still = Displacement(torch.zeros(2, *grid.shape), grid)
    begun = Velocity(still.flow, grid) if on == "velocity" else FFD(torch.zeros(2, 15, 17), grid, 3)
    found = refine(pair.moving, pair.fixed, pair.spec, 12, on=on, learning_rate=learning_rate)
    before, after = loss_at(pair, begun, objective), loss_at(pair, found, objective)
    assert after <= before + 1e-6
    assert after < 0.8 * before or learning_rate > 1


def test_a_start_that_cannot_be_bettered_is_given_back() -> None:
    grid = centred((26, 30))
    image = head(grid, radius=8)
    found = refine(image, image, spec(2), 40, learning_rate=5.0).on(grid)
    torch.testing.assert_close(found.flow, torch.zeros_like(found.flow), atol=1e-6, rtol=0)


def test_more_smoothness_gives_a_smoother_map() -> None:
    grid = centred((34, 40))
    moving, fixed = head(grid, 10, lambda x: x + torch.sin(x.flip(-1) / 3)), head(grid, 10)
    rough, smooth = (refine(moving, fixed, spec(2), 30, smoothness=weight).on(grid).flow for weight in (0.1, 10.0))
    assert smooth.diff(dim=1).square().mean() < 0.5 * rough.diff(dim=1).square().mean()


def test_any_terms_of_the_library_are_minimised() -> None:
    grid = centred((34, 40))
    moving, fixed = head(grid, 10, shift(-1.5, 0.0)), head(grid, 10)
    terms = Objective({"similarity": MSE(both_directions=True), "smoothness": BendingEnergy(weight=0.1)})
    found = refine(moving, fixed, spec(2), 40, objective=terms, learning_rate=0.15).on(grid).displacement_mm()[0]
    assert float(found[points(grid).norm(dim=-1) < 8].mean()) == pytest.approx(1.5, abs=0.4)
    with pytest.raises(ValueError, match="both directions"):
        refine(moving, fixed, spec(2), 1, objective=terms, on="control")


def test_time_that_is_over_ends_it_before_the_steps_are_done() -> None:
    grid = centred((26, 30))
    seen: list[int] = []
    refine(
        head(grid, 8, shift(1.0, 0.0)),
        head(grid, 8),
        spec(2),
        100_000,
        seconds=0.2,
        progress=lambda done, total, loss: seen.append(done),
    )
    assert len(seen) < 10_000


@pytest.mark.parametrize(("options", "words"), [({"on": "mesh"}, "on must be"), ({"seconds": 0.0}, "above 0")])
def test_what_makes_no_sense_is_refused(options: dict[str, object], words: str) -> None:
    image = head(centred((26, 30)), radius=8)
    with pytest.raises(ValueError, match=words):
        refine(image, image, spec(2), 1, **options)  # type: ignore[arg-type]


def test_a_loss_that_is_not_finite_at_the_start_is_refused() -> None:
    image = head(centred((26, 30)), radius=8)
    broken = Objective({"similarity": LNCC()})
    broken.terms["similarity"].weight = float("nan")
    with pytest.raises(ValueError, match="start from is nan"):
        refine(image, image, spec(2), 3, objective=broken)
