"""Published faults of other programs, tried on the command line: `evaluate` measures what they got wrong."""

import csv
import gc
from pathlib import Path

import pytest
import torch

from regnet.io import write_image, write_transform
from regnet.spatial import Displacement, Grid
from tests.spatial.worlds import oblique

from .command import regnet

_FILES = "moving.nii.gz,fixed.nii.gz"


def evaluated(folder: Path, columns: str, *words: object) -> dict[str, str]:
    """The figures of one pair, whose other files have the names of their columns."""
    names = columns.split(",")
    cells = [f"{name}.{'csv' if name.endswith('points') else 'nii.gz'}" for name in names]
    (folder / "pairs.csv").write_text(f"id,moving,fixed,{columns}\na,{_FILES},{','.join(cells)}\n")
    out = folder / "out"
    assert regnet("evaluate", "--pairs", folder / "pairs.csv", "--transforms", folder, "--out", out, *words) == 0
    with (out / "cases.csv").open(newline="") as stream:
        (case,) = csv.DictReader(stream)
    return case


def images(folder: Path, grid: Grid) -> None:
    for seed, name in enumerate(("moving", "fixed")):
        texture = torch.rand(grid.shape, generator=torch.Generator().manual_seed(seed))
        write_image(folder / f"{name}.nii.gz", texture, grid)


def field(folder: Path, grid: Grid, steps: float) -> None:
    flow = torch.zeros(grid.ndim, *grid.shape)
    flow[0] = steps
    write_transform(folder / "a_warp.nii.gz", Displacement(flow, grid))


def test_c33_a_label_that_is_moved_away_counts_as_0_and_one_in_neither_does_not_count(tmp_path: Path) -> None:
    grid = Grid((20, 12, 10), torch.eye(4))
    images(tmp_path, grid)
    field(tmp_path, grid, 3)
    fixed, moving = torch.zeros(2, *grid.shape, dtype=torch.int16)
    fixed[4:8, 2:6, 2:6] = 1
    moving[7:11, 2:6, 2:6] = 1
    fixed[15:18, 8:11, 6:9] = moving[0:3, 8:11, 6:9] = 2  # nothing is brought from there
    for name, labels in (("fixed", fixed), ("moving", moving)):
        write_image(tmp_path / f"{name}_labels.nii.gz", labels, grid)
    case = evaluated(tmp_path, "moving_labels,fixed_labels")
    assert [float(case[name]) for name in ("dice_1", "dice_2", "dice")] == [1.0, 0.0, 0.5]
    assert "dice_3" not in case


@pytest.mark.parametrize("turn", (0.0, 30.0))
@pytest.mark.parametrize("space", ("voxel", "voxel1"))
def test_c34_an_error_of_one_voxel_along_each_axis_is_3_6742_mm(tmp_path: Path, turn: float, space: str) -> None:
    grid = oblique((12, 14, 9), (1.5, 1.5, 3.0), turn, (4.0, -7.0, 20.0))
    images(tmp_path, grid)
    field(tmp_path, grid, 0)
    fixed = torch.tensor([[3.0, 4.0, 2.0], [6.0, 7.0, 5.0]]) + (space == "voxel1")
    for name, points in (("fixed", fixed), ("moving", fixed + 1)):
        lines = (",".join(map(str, point)) for point in points.tolist())
        (tmp_path / f"{name}_points.csv").write_text("\n".join(("x,y,z", *lines)) + "\n")
    case = evaluated(tmp_path, "moving_points,fixed_points", "--space", space)
    assert float(case["tre_mm"]) == pytest.approx(3.6742, abs=1e-4)


def test_c35_a_landmark_of_the_fixed_image_goes_along_the_field_and_its_partner_back(tmp_path: Path) -> None:
    grid = Grid((20, 12, 10), torch.diag(torch.tensor([2.0, 1.0, 1.0, 1.0])))
    images(tmp_path, grid)
    field(tmp_path, grid, 2)  # what is bright at 10 in the moving image shows at 8 in the fixed one
    for name, place in (("fixed", 8), ("moving", 10)):
        (tmp_path / f"{name}_points.csv").write_text(f"x,y,z\n{place},5,5\n")
    case = evaluated(tmp_path, "moving_points,fixed_points", "--space", "voxel")
    assert [float(case[name]) for name in ("tre_mm", "tre_mm_back")] == pytest.approx([0.0, 0.0], abs=1e-4)


def test_c50_one_pair_after_another_holds_no_memory(tmp_path: Path) -> None:
    images(tmp_path, Grid((24, 18, 20), torch.eye(4)))

    def held_after(pairs: int) -> int:
        rows = [f"{number},{_FILES}" for number in range(pairs)]
        (tmp_path / "pairs.csv").write_text("\n".join(("id,moving,fixed", *rows)) + "\n")
        assert regnet("evaluate", "--pairs", tmp_path / "pairs.csv", "--transforms", "none") == 0
        gc.collect()
        return sum(each.numel() for each in gc.get_objects() if type(each) is torch.Tensor)

    once = held_after(1)
    assert held_after(4) <= once
