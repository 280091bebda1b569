"""The benchmark of the operators runs, and what it compares is the same thing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from regnet import ops

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.mark.slow
def test_the_benchmark_runs_without_the_peers_and_tells_its_rows(tmp_path: Path) -> None:
    written = tmp_path / "rows.json"
    words = [sys.executable, str(BENCHMARKS / "ops.py"), "--quick", "--peers", "torch", "scipy", "--json", str(written)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(written.read_text(encoding="utf-8"))
    operations = {row["operation"] for row in rows}
    for word in ("pull", "push", "gradients", "prefilter", "ffd", "warp_labels", "one call"):
        assert any(word in operation for operation in operations), word
        assert word in done.stdout
    for row in rows:
        assert row["ours"] > 0 or row["unit"] == "fields"
        assert row["threads"] in (1, 2)
        assert (row["figure"] is None) == (row["theirs"] is None)


@pytest.mark.slow
def test_the_benchmark_of_the_losses_runs_and_tells_its_rows(tmp_path: Path) -> None:
    written = tmp_path / "rows.json"
    words = [sys.executable, str(BENCHMARKS / "losses.py"), "--quick", "--json", str(written)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(written.read_text(encoding="utf-8"))
    operations = {row["operation"] for row in rows}
    for word in ("lncc", "bending_energy", "soft_dice", "warped_dice"):
        assert any(word in operation for operation in operations), word
    assert all(row["ours"] > 0 or row["unit"] == "fields" for row in rows)


def test_the_benchmark_of_the_threads_tells_how_often_the_machine_was_its_own() -> None:
    words = [sys.executable, str(BENCHMARKS / "scaling.py"), "--quick", "--only", "pull"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 4 and all(line.startswith("pull") and line.endswith("of 2 turns") for line in lines)


@pytest.mark.slow
def test_the_ablation_runs_and_tells_a_row_for_each_head_and_loss(tmp_path: Path) -> None:
    written, table = tmp_path / "rows.json", tmp_path / "table.md"
    words = [
        sys.executable,
        str(BENCHMARKS / "ablation.py"),
        "--quick",
        "--json",
        str(written),
        "--markdown",
        str(table),
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(written.read_text(encoding="utf-8"))
    assert [(row["model"], row["loss"]) for row in rows] == [
        (model, loss) for loss in ("lncc", "mse") for model in ("unet_displacement", "unet_velocity")
    ]
    assert all(row["before_mm"] > 0 and row["error_sd"] > 0 and row["seconds"] > 0 for row in rows)
    assert table.read_text(encoding="utf-8").count("\n|") == 5


def test_the_benchmark_refuses_plain_torch() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "ops.py"), "--quick"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "REGNET_BACKEND": "torch"},
    )
    assert done.returncode == 2
    assert "plain torch" in done.stderr


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of the benchmark are scripts, which import each other by name."""
    monkeypatch.syspath_prepend(BENCHMARKS)


@pytest.mark.usefixtures("beside")
def test_a_peer_that_is_missing_has_a_row_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    import comparisons
    import rows

    monkeypatch.setitem(sys.modules, "SimpleITK", None)
    comparison = list(comparisons.warps((5, 6, 7)))[-1]
    for row in rows.compare(comparison, comparison.peers, 1):
        assert "not installed" in row.cells()
        assert row.ours > 0


@pytest.mark.usefixtures("beside")
@pytest.mark.parametrize("separable", [False, True])
def test_the_transposed_convolution_is_the_same_free_form_deformation(separable: bool) -> None:
    import peers

    shape = (9, 12, 10)
    control = torch.randn(1, 3, *((n - 1) // 4 + 4 for n in shape))
    torch.testing.assert_close(
        peers.transposed_convolution(control, shape, 4, separable)(), ops.ffd(control, shape, 4), atol=1e-5, rtol=0
    )


@pytest.mark.usefixtures("beside")
def test_what_torch_and_simpleitk_warp_is_the_same_inside() -> None:
    import comparisons
    import peers

    size = (17, 19, 18)
    image, flow = comparisons.problem(size)
    inside = (..., *[slice(7, -7)] * 3)  # where no sample lies outside
    expected = ops.warp(image, flow)[inside]
    grid = peers.normalised(ops.identity(size) + flow)
    torch.testing.assert_close(peers.grid_sample(image, grid)()[inside], expected, atol=1e-5, rtol=0)
    sitk = pytest.importorskip("SimpleITK")
    theirs = torch.from_numpy(sitk.GetArrayFromImage(peers.simpleitk_warp(image, flow, 1)()))
    torch.testing.assert_close(theirs[inside], expected[0, 0], atol=1e-5, rtol=0)


@pytest.mark.usefixtures("beside")
def test_every_stage_of_measuring_a_pair_runs(tmp_path: Path) -> None:
    import evaluate

    stages = evaluate.make(tmp_path, (24, 20, 22))
    assert len(stages) > 8
    for stage in stages.values():
        stage()


@pytest.mark.usefixtures("beside")
def test_the_models_of_the_step_benchmark_have_as_many_weights_as_voxelmorphs() -> None:
    import step

    for name in ("half", "full", "checkpointing"):
        one = step.Step(name, (9, 8, 7))
        before = [parameter.clone() for parameter in one.model.parameters()]
        one()
        assert all((was != now).any() for was, now in zip(before, one.model.parameters(), strict=True))
        assert one.weights() == pytest.approx(105_017, rel=0.01)  # VxmPairwise(3, 1, 1) of voxelmorph 0.3.4
