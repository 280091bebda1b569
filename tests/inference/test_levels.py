"""Levels fit into the memory there is, and parts found on one lattice are taken over on another."""

import pytest
import torch

from regnet.inference.refine import level as module
from regnet.inference.refine.level import schedule
from regnet.inference.refine.maps import MAPS
from regnet.inference.refine.memory import voxels_that_fit
from regnet.spatial import Displacement

from .heads import centred, points


def test_little_memory_makes_coarser_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = centred((100, 120, 100))
    fine = schedule(grid, 10)
    monkeypatch.setattr(module, "voxels_that_fit", lambda *_: 20_000)
    coarse = schedule(grid, 10)
    assert coarse[-1][0] > 2 * fine[-1][0]
    assert grid.with_spacing(coarse[-1][0]).voxels <= 22_000


def test_more_channels_leave_room_for_fewer_voxels() -> None:
    assert 0 < voxels_that_fit(8, 3) < voxels_that_fit(1, 3)
    assert voxels_that_fit(1, 3) < voxels_that_fit(1, 2)


@pytest.mark.parametrize("on", MAPS)
@pytest.mark.parametrize("shape", [(34, 41), (22, 25, 19)])
def test_a_smooth_part_is_the_same_on_a_finer_level_and_in_the_end(on: str, shape: tuple[int, ...]) -> None:
    coarse, fine = centred(shape, 2.0), centred(tuple(2 * n for n in shape))
    at = points(coarse).movedim(-1, 0).float()
    given = Displacement(0.1 * torch.sin(at / 9), coarse)
    first, second = MAPS[on](coarse), MAPS[on](fine)
    part = first.part(first.numbers([given]))
    numbers = second.numbers([part])
    inside = (slice(None), slice(None), *[slice(6, -6)] * len(shape))
    here = second.fields(numbers)["displacement"][inside]
    there = first.transform(first.numbers([given])).on(fine).flow[None][inside]
    assert here.abs().max() > 0.1
    torch.testing.assert_close(here, there, atol=0.02, rtol=0)
    torch.testing.assert_close(second.transform(numbers).on(fine).flow[None][inside], here, atol=0.01, rtol=0)
