"""``regnet evaluate`` on pairs whose figures are known."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from regnet.cli.main import main
from regnet.inference import cohort
from regnet.io import write_image, write_transform
from regnet.spatial import Affine, Displacement, Grid

SPACING = (2.0, 1.0, 1.5)
SHAPE = (20, 18, 16)
LABELS = ("", "_1", "_7")


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
            **dict.fromkeys(("dice", "dice_1", "dice_7", "lncc", "jacobian_p5", "jacobian_p95"), 1.0),
            **{
                f"{name}_{unit}{label}": 0.0
                for name in ("hd95", "assd")
                for unit in ("mm", "voxel")
                for label in LABELS
            },
            **dict.fromkeys(("displacement_mean_mm", "displacement_max_mm"), 6.0),
            **dict.fromkeys(("folding_percent", "folding_percent_grid", "ndv_percent", "epe_mean_mm"), 0.0),
            **dict.fromkeys(("sdlogj", "sdlogj_grid", "sdlogj_learn2reg", "sdlogj_learn2reg_mask"), 0.0),
            "nmi": 2.0,
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
    text = table.read_text("utf-8") + "two,moving.nii.gz,fixed.nii.gz,,,\n"
    table.write_text(text)
    assert main(["evaluate", "--pairs", str(table), "--transforms", "none", "--out", str(out)]) == 0
    summary = json.loads((out / "summary.json").read_text("utf-8"), parse_constant=pytest.fail)
    aggregates = summary["aggregates"]
    assert aggregates["dice"]["n"] == 1 and aggregates["lncc"]["n"] == 2
    assert aggregates["dice"].keys() == {"mean", "std", "30", "min", "max", "low", "high", "n"}
    assert set(summary["columns"]) >= {"dice", "sdlogj"} and list(summary["cases"]) == ["one", "two"]
    dice = summary["cases"]["one"]["dice"]
    assert dice["mean"] == pytest.approx((dice["detailed"]["1"] + dice["detailed"]["7"]) / 2)
    sdlogj = summary["cases"]["two"]["sdlogj"]
    assert sdlogj["mean"] == sdlogj["detailed"] == 0
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
    assert (out / "cases.csv").read_text("utf-8") == "mine"
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


def _points(path: Path, points: torch.Tensor) -> None:
    path.write_text("x,y,z\n" + "".join(",".join(map(str, point)) + "\n" for point in points.tolist()))


@pytest.mark.parametrize("space", ["ras", "lps", "voxel", "voxel1"])
def test_landmarks_are_measured_in_mm_in_both_directions_from_any_space(space: str, tmp_path: Path) -> None:
    table, out, grid = _write(tmp_path), tmp_path / "out", _grid()
    fixed = torch.tensor([[6.0, 5.0, 4.0], [9.0, 8.0, 7.5], [7.25, 9.0, 6.0]])
    moving = fixed + torch.tensor([3.0, 0.0, 2.0])  # the map adds 3 voxels along axis 0: 2 voxels of 1.5 mm are missed
    for name, points in (("moving", moving), ("fixed", fixed)):
        world = grid.to_world(points)
        flip = torch.tensor([-1.0, -1.0, 1.0])
        said = {"ras": world, "lps": world * flip, "voxel": points, "voxel1": points + 1}[space]
        _points(tmp_path / f"{name}.csv", said)
    table.write_text(
        "id,moving,fixed,moving_points,fixed_points\none,moving.nii.gz,fixed.nii.gz,moving.csv,fixed.csv\n"
    )
    words = ["evaluate", "--pairs", str(table), "--transforms", str(tmp_path / "warps"), "--out", str(out)]
    assert main([*words, "--space", space]) == 0
    (case,) = _cases(out)
    assert [float(case[name]) for name in ("tre_mm", "tre_mm_learn2reg", "tre_mm_back")] == pytest.approx([3.0] * 3)
    detailed = json.loads((out / "summary.json").read_text("utf-8"))["cases"]["one"]["tre_mm"]["detailed"]
    assert detailed == pytest.approx([3.0] * 3, abs=1e-4)


def test_landmarks_that_do_not_pair_or_say_no_space_are_refused(tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    table = _write(tmp_path)
    _points(tmp_path / "moving.csv", torch.ones(3, 3))
    _points(tmp_path / "fixed.csv", torch.ones(4, 3))
    table.write_text(
        "id,moving,fixed,moving_points,fixed_points\none,moving.nii.gz,fixed.nii.gz,moving.csv,fixed.csv\n"
    )
    words = ["evaluate", "--pairs", str(table), "--transforms", "none"]
    assert main(words) == 2
    assert "--space" in capsys.readouterr().err
    assert main([*words, "--space", "ras"]) == 2
    assert "3 of the moving and 4 of the fixed" in capsys.readouterr().err


def test_an_inverse_beside_the_map_is_measured_against_it(tmp_path: Path) -> None:
    table, out, grid = _write(tmp_path), tmp_path / "out", _grid()
    back = torch.zeros(3, *SHAPE)
    back[0] = -2.5  # half a voxel of 2 mm is left
    write_transform(tmp_path / "warps" / "one_inverse_warp.nii.gz", Displacement(back, grid))
    mask = torch.zeros(grid.shape, dtype=torch.uint8)
    mask[2:12] = 1  # 3 more are still on the grid
    write_image(tmp_path / "mask.nii.gz", mask, grid)
    table.write_text("id,moving,fixed,fixed_mask\none,moving.nii.gz,fixed.nii.gz,mask.nii.gz\n")
    words = ["evaluate", "--pairs", str(table), "--transforms", str(tmp_path / "warps"), "--out", str(out)]
    assert main(words) == 0
    (case,) = _cases(out)
    assert float(case["inverse_mean_mm"]) == float(case["inverse_max_mm"]) == pytest.approx(1)


def test_a_warp_and_an_affine_map_are_taken_as_ants_leaves_them(tmp_path: Path) -> None:
    table, out, grid = _write(tmp_path), tmp_path / "out", _grid()
    larger = torch.diag(torch.tensor([1.25, 1.0, 1.0, 1.0], dtype=torch.float64))
    larger[0, 3] = 2.0
    points = torch.tensor([[12.0, 6.0, 7.5], [16.0, 9.0, 9.0]], dtype=torch.float64)
    flow = torch.zeros(3, *SHAPE)
    flow[0] = 1.0  # first 2 mm along axis 0, then 1.25 times as far and 2 mm more
    write_transform(tmp_path / "ants" / "one_1Warp.nii.gz", Displacement(flow, grid))
    write_transform(tmp_path / "ants" / "one_0GenericAffine.mat", Affine(larger))
    _points(tmp_path / "fixed.csv", points)
    _points(
        tmp_path / "moving.csv",
        (points + torch.tensor([2.0, 0, 0])) * torch.tensor([1.25, 1, 1]) + torch.tensor([2.0, 0, 0]),
    )
    table.write_text(
        "id,moving,fixed,moving_points,fixed_points\none,moving.nii.gz,fixed.nii.gz,moving.csv,fixed.csv\n"
    )
    words = ["evaluate", "--pairs", str(table), "--transforms", str(tmp_path / "ants"), "--out", str(out)]
    assert main([*words, "--space", "ras"]) == 0
    (case,) = _cases(out)
    assert [float(case[f"tre_mm{end}"]) for end in ("", "_back")] == pytest.approx([0, 0], abs=1e-4)
    assert [float(case[f"jacobian_{end}"]) for end in ("p5", "p95")] == pytest.approx([1, 1], abs=1e-4)


def test_what_the_moving_mask_leaves_out_is_not_compared(tmp_path: Path) -> None:
    table, out, grid = _write(tmp_path), tmp_path / "out", _grid()
    spoilt = _boxes(8, grid)[0]
    spoilt[:, 8:] = torch.rand(20, 10, 16, generator=torch.Generator().manual_seed(9))
    write_image(tmp_path / "moving.nii.gz", spoilt, grid)
    mask = torch.ones(grid.shape, dtype=torch.uint8)
    mask[:, 8:] = 0
    write_image(tmp_path / "mask.nii.gz", mask, grid)
    words = ["evaluate", "--pairs", str(table), "--transforms", str(tmp_path / "warps"), "--overwrite"]
    figures = []
    for column, cell in (("group", ""), ("moving_mask", "mask.nii.gz")):
        table.write_text(f"id,moving,fixed,{column}\none,moving.nii.gz,fixed.nii.gz,{cell}\n")
        assert main([*words, "--out", str(out)]) == 0
        figures.append({name: float(_cases(out)[0][name]) for name in ("lncc", "nmi")})
    assert figures[0]["lncc"] < 0.9 and figures[0]["nmi"] < 1.9
    assert figures[1] == pytest.approx({"lncc": 1, "nmi": 2}, abs=1e-4)


def test_labels_that_one_image_lacks_are_not_scored(tmp_path: Path) -> None:
    table, out, grid = _write(tmp_path), tmp_path / "out", _grid()
    for name, start, extra in (("fixed", 5, 4), ("moving", 8, 6)):
        labels = _boxes(start, grid)[1]
        labels[start, 4, 4] = extra
        write_image(tmp_path / f"{name}_labels.nii.gz", labels, grid)
    words = ["evaluate", "--pairs", str(table), "--transforms", str(tmp_path / "warps"), "--out", str(out)]
    assert main(words) == 0
    (case,) = _cases(out)
    assert {name for name in case if name.startswith("dice")} == {"dice", "dice_1", "dice_7"}


@pytest.mark.filterwarnings("default:.*no label in common")
def test_a_pair_without_any_common_label_gets_a_warning_and_no_dice(tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    table, out, grid = _write(tmp_path), tmp_path / "out", _grid()
    write_image(tmp_path / "fixed_labels.nii.gz", torch.zeros(SHAPE, dtype=torch.uint8), grid)
    words = ["evaluate", "--pairs", str(table), "--transforms", str(tmp_path / "warps"), "--out", str(out)]
    assert main(words) == 0
    assert _cases(out)[0]["dice"] == ""
    assert "have no label in common" in capsys.readouterr().err


def _several(folder: Path, count: int) -> list[str]:
    table = _write(folder)
    row = "moving.nii.gz,fixed.nii.gz,moving_labels.nii.gz,fixed_labels.nii.gz"
    lines = [f"{n},{row}\n" for n in range(count)]
    table.write_text("id,moving,fixed,moving_labels,fixed_labels\n" + "".join(lines))
    for n in range(count):
        flow = torch.zeros(3, *SHAPE)
        flow[0] = n
        write_transform(folder / "warps" / f"{n}_warp.nii.gz", Displacement(flow, _grid()))
    return ["evaluate", "--pairs", str(table), "--transforms", str(folder / "warps")]


def test_bad_pairs_are_told_at_the_end_and_what_changed_is_measured_anew(tmp_path: Path, monkeypatch, capsys) -> None:  # type: ignore[no-untyped-def]
    words, out = [*_several(tmp_path, 4), "--out", str(tmp_path / "out")], tmp_path / "out"
    measured = []
    evaluate = cohort.evaluate

    def noted(case, protocol):  # type: ignore[no-untyped-def]
        measured.append(case.pair.id)
        return evaluate(case, protocol)

    monkeypatch.setattr(cohort, "evaluate", noted)
    good = (tmp_path / "warps" / "2_warp.nii.gz").read_bytes()
    (tmp_path / "warps" / "2_warp.nii.gz").write_bytes(b"junk")
    (tmp_path / "warps" / "3_warp.nii.gz").rename(tmp_path / "warps" / "3.away")
    assert main(words) == 3
    assert measured == ["0", "1", "2"] and [case["id"] for case in _cases(out)] == ["0", "1"]
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[:3] for line in lines] == [["regnet", "failed", "3"], ["regnet", "failed", "2"]]
    assert "no transform for '3'" in lines[0] and "2_warp.nii.gz" in lines[1]
    assert list(json.loads((out / "summary.json").read_text("utf-8"))["failed"]) == ["3", "2"]

    measured.clear()
    (tmp_path / "warps" / "2_warp.nii.gz").write_bytes(good)
    (tmp_path / "warps" / "3.away").rename(tmp_path / "warps" / "3_warp.nii.gz")
    assert main([*words, "--overwrite"]) == 0
    assert measured == ["2", "3"]
    first = (out / "cases.csv").read_bytes()

    measured.clear()
    assert main([*words, "--overwrite"]) == 0
    assert measured == [] and (out / "cases.csv").read_bytes() == first
    assert main([*words, "--overwrite", "--labels", "linear"]) == 0
    assert measured == ["0", "1", "2", "3"]

    measured.clear()
    (out / "cases" / "1.json").write_text("half a fi")
    content = json.loads((out / "cases" / "2.json").read_text("utf-8"))
    (out / "cases" / "2.json").write_text(json.dumps(content | {"measures": []}))
    write_transform(tmp_path / "warps" / "3_warp.nii.gz", Displacement(torch.zeros(3, *SHAPE), _grid()))
    assert main([*words, "--overwrite", "--labels", "linear"]) == 0
    assert measured == ["1", "2", "3"]
    assert [float(case["displacement_mean_mm"]) for case in _cases(out)] == pytest.approx([0, 2, 4, 0])


def test_several_at_a_time_give_the_same_table_and_a_mistake_is_one_line(tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    words = _several(tmp_path, 3)
    assert main([*words, "--out", str(tmp_path / "one")]) == 0
    good = (tmp_path / "warps" / "2_warp.nii.gz").read_bytes()
    (tmp_path / "warps" / "2_warp.nii.gz").write_bytes(b"junk")
    capsys.readouterr()
    together = [*words, "--jobs", "2", "--out", str(tmp_path / "two")]
    assert main(together) == 3
    lines = [line for line in capsys.readouterr().err.splitlines() if line]
    assert len(lines) == 1 and lines[0].startswith("regnet: failed: 2: ") and "2_warp.nii.gz" in lines[0]
    assert {path.name for path in (tmp_path / "two" / "cases").iterdir()} == {"0.json", "1.json"}
    (tmp_path / "warps" / "2_warp.nii.gz").write_bytes(good)
    assert main([*together, "--overwrite"]) == 0
    assert (tmp_path / "one" / "cases.csv").read_bytes() == (tmp_path / "two" / "cases.csv").read_bytes()
    assert main([*words, "--jobs", "0"]) == 2


@pytest.mark.filterwarnings("always")
def test_a_run_is_tested_against_another(tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    words, before, after = _several(tmp_path, 3), tmp_path / "before", tmp_path / "after"
    assert main([*words[:-1], "none", "--out", str(before)]) == 0
    capsys.readouterr()
    for against in (before, before / "cases.csv"):
        assert main([*words, "--out", str(after), "--overwrite", "--against", str(against)]) == 0
        found = json.loads((after / "summary.json").read_text("utf-8"))["against"]["displacement_mean_mm"]
        assert found["n"] == 3 and found["theirs"] == 0 and found["difference"] == pytest.approx(2)
        assert found["p"] == pytest.approx(0.5)  # of three cases two differ, both one way: 2 of 4
        assert "difference" in capsys.readouterr().out
    assert main([*words, "--labels", "linear", "--against", str(before)]) == 0
    assert "was measured with --labels nearest, this run with linear" in capsys.readouterr().err
    assert main([*words, "--against", str(tmp_path / "nowhere")]) == 2
    assert "no such file" in capsys.readouterr().err


@pytest.mark.filterwarnings("always")
def test_a_field_of_a_part_and_half_a_pair_of_landmarks_get_a_warning(tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    table = _write(tmp_path)
    lines = table.read_text("utf-8").splitlines()
    (tmp_path / "points.csv").write_text("x,y,z\n1,2,3\n")
    table.write_text(f"{lines[0]},moving_points\n{lines[1]},points.csv\n")
    words = ["evaluate", "--pairs", str(table), "--transforms", str(tmp_path / "warps")]
    part = Displacement(torch.zeros(3, 10, 18, 16), _grid((10, 18, 16)))
    write_transform(tmp_path / "warps" / "one_warp.nii.gz", part)
    assert main(words) == 0
    told = capsys.readouterr().err
    assert "one_warp.nii.gz: does not reach 50 % of " in told
    assert "one: has moving_points alone, so its points are not measured" in told
