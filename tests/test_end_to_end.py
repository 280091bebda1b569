"""Slices of the sample brains, from files to files: train, register, apply, evaluate."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from regnet.cli.main import main
from regnet.data import axial_slice, sample_path
from regnet.io import Image, read_image, read_labels, write_image
from regnet.spatial import Grid

TRAINING = [
    "experiment=smoke",
    "data=pairs",
    "data.spec.ndim=2",
    "data.spec.spacing=4",
    "trainer.max_epochs=1",
    "callbacks=quiet",
    "logger=csv",
]


def regnet(*words: object) -> None:
    assert main([str(word) for word in words]) == 0


def as_picture(image: Image) -> Image:
    """The slice as a picture holds it: whole grey levels, columns to the left and rows to the back, from the origin."""
    grid = image.grid
    affine = torch.diag(torch.tensor([-grid.spacing[0], -grid.spacing[1], 1.0], dtype=torch.float64))
    return Image(image.data.flip(1, 2), Grid(grid.shape, affine))


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".nii", ".png"])
def test_slices_are_trained_on_registered_applied_and_evaluated(tmp_path: Path, suffix: str) -> None:
    for brain in ("colin27", "mni152"):
        for kind, read in (("t1", read_image), ("tissue", read_labels)):
            image = axial_slice(read(sample_path(f"{brain}_{kind}")), 10)
            image = as_picture(image) if suffix == ".png" else image
            write_image(tmp_path / f"{brain}_{kind}{suffix}", image.data, image.grid)
    moving, fixed = tmp_path / f"colin27_t1{suffix}", tmp_path / f"mni152_t1{suffix}"
    labels = tmp_path / f"colin27_tissue{suffix}"
    table = tmp_path / "pairs.csv"
    table.write_text(
        "id,moving,fixed,moving_labels,fixed_labels\n"
        f"slice,{moving.name},{fixed.name},{labels.name},mni152_tissue{suffix}\n"
    )
    run = tmp_path / "run"
    training = [sys.executable, "-m", "regnet", "train", *TRAINING, f"data.pairs={table}", f"hydra.run.dir={run}"]
    result = subprocess.run(training, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert result.returncode == 0, result.stderr

    out = tmp_path / "out"
    regnet(
        *("register", "--moving", moving, "--fixed", fixed, "--model", run, "--refine", 40),
        *("--moved", out / f"moved{suffix}", "--warp", out / "slice_warp.nii.gz", "--figure", out / "figure.png"),
    )
    regnet(
        *("apply", "--moving", labels, "--reference", fixed, "-t", out / "slice_warp.nii.gz", "--interp", "label"),
        *("--out", out / f"labels{suffix}"),
    )
    moved = read_labels(out / f"labels{suffix}")
    assert set(moved.data.unique().tolist()) == {0, 1, 2}
    assert read_image(out / f"moved{suffix}").data.shape == read_image(fixed).data.shape

    dice = []
    for transforms in ("none", out):
        regnet("evaluate", "--pairs", table, "--transforms", transforms, "--out", out / "measures", "--overwrite")
        summary = json.loads((out / "measures" / "summary.json").read_text("utf-8"))
        dice.append(summary["cases"]["slice"]["dice"]["mean"])
    assert dice[1] > dice[0] + 0.05
