"""Training on two processes, as a command."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from regnet.cli.main import main
from regnet.data.loading import EpochSampler
from regnet.errors import InputError
from regnet.io import read_checkpoint
from regnet.training.processes import check_common_folder
from tests.training import tiny

ROOT = Path(__file__).resolve().parents[2]
WORDS = [
    "experiment=smoke", "callbacks=quiet", "logger=csv", "data.spec.ndim=2", "data.pairs=4", "data.validation_pairs=5",
    "trainer.num_sanity_val_steps=0", "trainer.max_epochs=1", "optimizer=sgd",
]  # fmt: skip

pytestmark = [
    tiny.quiet,
    # Hydra's own use of the standard library
    pytest.mark.filterwarnings("ignore::DeprecationWarning:hydra.*"),
]


def epoch(folder):
    """The means of the one epoch."""
    (table,) = (folder / "csv").rglob("metrics.csv")
    rows = list(csv.DictReader(table.read_text("utf-8").splitlines()))
    means = {key: float(value) for row in rows for key, value in row.items() if value and "/" in key}
    return {key: value for key, value in means.items() if not key.startswith(("step", "time", "memory"))}, [
        float(row["step/loss"]) for row in rows if row["step/loss"]
    ]


@pytest.mark.slow
def test_a_grid_of_jobs_of_two_processes_has_the_losses_of_one_process(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["train", *WORDS, "data.batch_size=2", f"hydra.run.dir={tmp_path}/one"]) == 0
    place = tmp_path / "elsewhere"
    place.mkdir()
    environment = {**os.environ, "WANDB_MODE": "offline", "WANDB_SILENT": "true"}
    done = subprocess.run(
        [sys.executable, str(ROOT / "train.py"), "-m", *WORDS, "logger=wandb", "trainer.devices=2",
         "+trainer.strategy=ddp", "optimizer.lr=1e-2,1e-3", f"hydra.sweep.dir={tmp_path}/grid"],
        cwd=place, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not list(place.iterdir())
    files = ["0", "1", "multirun.yaml", "results.json", "sweep.json"]
    assert sorted(path.name for path in (tmp_path / "grid").iterdir()) == files
    assert done.stdout.count("val/loss ") == 2  # one process speaks
    for job, rate in (("0", 1e-2), ("1", 1e-3)):
        folder = tmp_path / "grid" / job
        assert OmegaConf.load(folder / "config.yaml").optimizer.lr == rate
        assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == ["best.ckpt", "last.ckpt"]
        assert len(list((folder / "wandb").glob("offline-run-*"))) == 1
    one, two = epoch(tmp_path / "one"), epoch(tmp_path / "grid" / "0")
    assert two[1] == pytest.approx(one[1], rel=1e-6)
    assert two[0] == pytest.approx(one[0], rel=1e-5, abs=1e-6)
    weights = [read_checkpoint(tmp_path / name / "checkpoints" / "best.ckpt") for name in ("one", "grid/0")]
    for name, value in weights[0]["state_dict"].items():
        assert (value - weights[1]["state_dict"][name]).abs().max() < 1e-6
    # Two processes go on as one does.
    assert main(["train", "--resume", f"{tmp_path}/one", "trainer.max_epochs=2"]) == 0
    more = [sys.executable, str(ROOT / "train.py"), "--resume", f"{tmp_path}/grid/0", "trainer.max_epochs=2"]
    done = subprocess.run(more, cwd=place, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "grid" / "0" / "wandb").glob("offline-run-*"))) == 2  # parts of one run, by its id
    weights = [read_checkpoint(tmp_path / name / "checkpoints" / "last.ckpt") for name in ("one", "grid/0")]
    assert [each["epoch"] for each in weights] == [1, 1]
    for name, value in weights[0]["state_dict"].items():
        assert (value - weights[1]["state_dict"][name]).abs().max() < 1e-6


def test_validation_counts_every_pair_once():
    parts = [list(EpochSampler(range(5), shuffle=False, replicas=2, rank=rank)) for rank in (0, 1)]
    assert parts == [[(0, 0), (0, 2), (0, 4)], [(0, 1), (0, 3)]]
    assert [len(EpochSampler(range(5), shuffle=False, replicas=2, rank=rank)) for rank in (0, 1)] == [3, 2]


@pytest.mark.parametrize("name", ["TORCHELASTIC_RUN_ID", "SLURM_NTASKS"])
def test_processes_that_start_by_themselves_need_one_folder(name, monkeypatch):
    check_common_folder([])
    monkeypatch.setenv(name, "2")
    with pytest.raises(InputError, match=r"set hydra.run.dir=DIR"):
        check_common_folder(["seed=1"])
    check_common_folder(["hydra.run.dir=here"])
