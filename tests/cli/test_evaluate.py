"""``regnet evaluate`` on pairs whose figures are known."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from regnet.cli.main import main
from regnet.io import write_image, write_transform
from regnet.spatial import Displacement, Grid

SPACING = (2.0, 1.0, 1.5)
SHAPE = (20, 18, 16)


def _grid(shape: tuple[int, ...] = SHAPE) -> Grid:
    return Grid(shape, torch.diag(torch.tensor([*SPACING[: len(shape)], 1.0])))


def _boxes(start: int, grid: Grid) -> tuple[torch.Tensor, torch.Tensor]:
    """A textured image, and label 1 in a box from ``start`` along axis 0, label 7 in its core."""
    labels = torch.zeros(grid.shape, dtype=torch.int16)
    outer, inner = (slice(4, 12),) * (grid.ndim - 1), (slice(6, 10),) * (grid.ndim - 1)
    labels[(slice(start, start + 8), *outer)] = 1
    labels[(slice(start + 2, start + 5), *inner)] = 7
    texture = torch.rand(grid.shape, generator=torch.Generator().manual_seed(0)).roll(start, 0)
    return labels + 0.5 * (labels > 0) * texture, labels


def _write(folder: Path, shape: tuple[int, ...] = SHAPE) -> Path:
    """A pair whose fixed box lies 3 voxels (6 mm) before the moving one along axis 0; its field; its table."""
    grid = _grid(shape)
    for name, start in (("fixed", 5), ("moving", 8)):
        image, labels = _boxes(start, grid)
        write_image(folder / f"{name}.nii.gz", image, grid)
        write_image(folder / f"{name}_labels.nii.gz", labels, grid)
    flow = torch.zeros(grid.ndim, *grid.shape)
    flow[0] = 3
    write_transform(folder / "warps" / "one_warp.nii.gz", Displacement(flow, grid))
    table = folder / "pairs.csv"
    table.write_text(
        "id,moving,fixed,moving_labels,fixed_labels,true_warp\n"
        "one,moving.nii.gz,fixed.nii.gz,moving_labels.nii.gz,fixed_labels.nii.gz,warps/one_warp.nii.gz\n"
    )
    return table


def _cases(folder: Path) -> list[dict[str, str]]:
    with (folder / "cases.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize("shape", [SHAPE, SHAPE[:2]])
@pytest.mark.parametrize("labels", ["nearest", "linear"])
def test_the_true_field_scores_as_perfect(shape: tuple[int, ...], labels: str, tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    table, out = _write(tmp_path, shape), tmp_path / "out"
    words = ["evaluate", "--pairs", str(table), "--transforms", str(tmp_path / "warps"), "--out", str(out)]
    assert main([*words, "--labels", labels]) == 0
    (case,) = _cases(out)
    figures = {name: float(value) for name, value in case.items() if name != "id"}
    assert figures == pytest.approx(
        {
            **dict.fromkeys(("dice", "dice_1", "dice_7", "lncc"), 1.0),
            **dict.fromkeys(("hd95_mm", "hd95_mm_1", "hd95_mm_7"), 0.0),
            **dict.fromkeys(("displacement_mean_mm", "displacement_max_mm"), 6.0),
            **dict.fromkeys(("folding_percent", "folding_percent_grid", "sdlogj", "sdlogj_grid", "epe_mean_mm"), 0.0),
        },
        abs=1e-5,
    )
    printed = capsys.readouterr().out
    assert "1.000" in printed and str(out / "summary.json") in printed
    assert all(len(line) <= 80 for line in printed.splitlines() if str(tmp_path) not in line)


def test_no_transform_measures_the_images_as_they_lie(tmp_path: Path) -> None:
    table, out = _write(tmp_path), tmp_path / "out"
    assert main(["evaluate", "--pairs", str(table), "--transforms", "none", "--out", str(out)]) == 0
    (case,) = _cases(out)
    # label 7: 3 x 4 x 4 voxels, shifted by 3, the distance of the outer faces is 3 voxels of 2 mm; no overlap
    assert float(case["dice_7"]) == 0 and float(case["hd95_mm_7"]) == pytest.approx(6)
    # label 1: 5 of the box's 8 layers overlap, less what is core there in the fixed (2 layers) and the moving (3)
    both, size = 5 * 64 - 2 * 16 - 3 * 16, 8 * 64 - 3 * 16
    assert float(case["dice_1"]) == pytest.approx(both / size, abs=1e-4)
    assert float(case["epe_mean_mm"]) == pytest.approx(6)
    assert float(case["displacement_max_mm"]) == 0


def test_the_summary_says_what_the_columns_mean_and_holds_no_nan(tmp_path: Path) -> None:
    table, out = _write(tmp_path), tmp_path / "out"
    text = table.read_text() + "two,moving.nii.gz,fixed.nii.gz,,,\n"
    table.write_text(text)
    assert main(["evaluate", "--pairs", str(table), "--transforms", "none", "--out", str(out)]) == 0
    summary = json.loads((out / "summary.json").read_text(), parse_constant=pytest.fail)
    assert summary["summary"]["dice"]["n"] == 1 and summary["summary"]["lncc"]["n"] == 2
    assert set(summary["columns"]) >= {"dice", "sdlogj"} and [case["id"] for case in summary["cases"]] == ["one", "two"]
    assert _cases(out)[1]["dice"] == ""


def test_a_field_on_another_grid_means_the_same_map(tmp_path: Path) -> None:
    table, out = _write(tmp_path), tmp_path / "out"
    coarse = _grid().coarser(2)
    flow = torch.zeros(3, *coarse.shape)
    flow[0] = 1.5
    write_transform(tmp_path / "coarse" / "one.nii.gz", Displacement(flow, coarse))
    words = ["evaluate", "--pairs", str(table), "--transforms", str(tmp_path / "coarse"), "--out", str(out)]
    assert main(words) == 0
    (case,) = _cases(out)
    assert float(case["dice"]) == 1 and float(case["epe_mean_mm"]) == pytest.approx(0, abs=1e-5)


def test_the_fixed_mask_of_the_table_is_where_regularity_is_measured(tmp_path: Path) -> None:
    table, out, grid = _write(tmp_path), tmp_path / "out", _grid()
    flow = torch.zeros(3, *grid.shape)
    flow[1, :10] = -2 * torch.arange(SHAPE[1]).view(1, -1, 1)  # the first half is mirrored
    write_transform(tmp_path / "warps" / "one_warp.nii.gz", Displacement(flow, grid))
    mask = torch.zeros(grid.shape, dtype=torch.uint8)
    mask[12:] = 1
    write_image(tmp_path / "mask.nii.gz", mask, grid)
    table.write_text("id,moving,fixed,fixed_mask\none,moving.nii.gz,fixed.nii.gz,mask.nii.gz\n")
    words = ["evaluate", "--pairs", str(table), "--transforms", str(tmp_path / "warps"), "--out", str(out)]
    assert main(words) == 0
    (case,) = _cases(out)
    assert float(case["folding_percent"]) == 0 and float(case["folding_percent_grid"]) == pytest.approx(50)


def test_only_the_rows_of_a_split(tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    table = _write(tmp_path)
    table.write_text(
        "id,moving,fixed,split\none,moving.nii.gz,fixed.nii.gz,train\ntwo,moving.nii.gz,fixed.nii.gz,test\n"
    )
    words = ["evaluate", "--pairs", str(table), "--transforms", "none", "--split"]
    assert main([*words, "test"]) == 0
    first_words = [line.split()[:1] for line in capsys.readouterr().out.splitlines()]
    assert ["two"] in first_words and ["one"] not in first_words
    assert main([*words, "nowhere"]) == 2
    assert "no row has the split 'nowhere'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda folder: (folder / "warps" / "one_warp.nii.gz").rename(folder / "warps" / "other.nii.gz"), "true_warp"),
        (lambda folder: (folder / "warps" / "one_warp.nii.gz").write_bytes(b"junk"), "one_warp.nii.gz"),
        (
            lambda folder: write_image(
                folder / "moving_labels.nii.gz", torch.ones(5, 6, 7, dtype=torch.uint8), _grid((5, 6, 7))
            ),
            "moving_labels.nii.gz: shape",
        ),
        (lambda folder: write_image(folder / "fixed_labels.nii.gz", torch.rand(SHAPE), _grid()), "whole numbers"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_no_output(break_it, message: str, tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    table, out = _write(tmp_path), tmp_path / "out"
    break_it(tmp_path)
    words = ["evaluate", "--pairs", str(table), "--transforms", str(tmp_path / "warps"), "--out", str(out)]
    assert main(words) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("regnet: error:")]
    assert len(lines) == 1 and message in lines[0]
    assert not out.exists() or not any(out.iterdir())


def test_a_missing_transform_is_named_and_existing_outputs_are_kept(tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    table, out = _write(tmp_path), tmp_path / "out"
    (tmp_path / "empty").mkdir()
    words = ["evaluate", "--pairs", str(table), "--transforms"]
    assert main([*words, str(tmp_path / "empty")]) == 2
    assert "no transform for 'one'" in capsys.readouterr().err
    assert main([*words, str(tmp_path / "nowhere")]) == 2
    assert "no such folder" in capsys.readouterr().err
    out.mkdir()
    (out / "cases.csv").write_text("mine")
    assert main([*words, "none", "--out", str(out)]) == 2
    assert (out / "cases.csv").read_text() == "mine"
    assert main([*words, "none", "--out", str(out), "--overwrite"]) == 0
    assert np.isfinite(float(_cases(out)[0]["dice"]))


def test_images_that_cannot_be_measured_are_named(tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    table = _write(tmp_path)
    words = ["evaluate", "--pairs", str(table), "--transforms", "none", "--out", str(tmp_path / "out")]
    fixed = torch.rand(SHAPE)
    fixed[3, 3, 3] = torch.nan
    for image, grid, said in (
        (fixed, _grid(), "1 voxels are NaN"),
        (torch.ones(SHAPE), _grid(), "every voxel has the value 1"),
        (torch.rand(SHAPE[:2]), _grid(SHAPE[:2]), "3 and 2 axes"),
    ):
        write_image(tmp_path / "fixed.nii.gz", image, grid)
        assert main(words) == 2
        lines = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
        assert len(lines) == 1 and "fixed.nii.gz" in lines[0] and said in lines[0]
    assert not (tmp_path / "out").exists()


def test_all_channels_are_measured_and_the_table_is_never_replaced(tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    _write(tmp_path)
    table = tmp_path / "cases.csv"
    table.write_text("id,moving,fixed\none,moving.nii.gz;moving.nii.gz,fixed.nii.gz;fixed.nii.gz\n")
    words = ["evaluate", "--pairs", str(table), "--transforms", "none"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    table.write_text("id,moving,fixed\none,moving.nii.gz;moving_labels.nii.gz,fixed.nii.gz;missing.nii.gz\n")
    assert main([*words, "--out", str(tmp_path), "--overwrite"]) == 2
    assert "missing.nii.gz" in capsys.readouterr().err
    table.write_text("id,moving,fixed\none,moving.nii.gz,fixed.nii.gz\n")
    assert main([*words, "--out", str(tmp_path), "--overwrite"]) == 2
    assert "cases.csv: is an input and an output" in capsys.readouterr().err
