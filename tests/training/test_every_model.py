"""One command trains every model."""

import subprocess
import sys
from pathlib import Path

import pytest

from regnet.inference import load_model
from tests.models.configured import NAMES

ROOT = Path(__file__).parents[2]
SMALL = ("data=smoke", "data.spec.ndim=2", "data.pairs=2", "data.validation_pairs=1", "trainer.max_epochs=1")
QUIET = ("trainer.num_sanity_val_steps=0", "callbacks=quiet", "logger=none")


@pytest.mark.slow
def test_every_model_trains_an_epoch_on_the_sample_brains_in_one_command(tmp_path: Path) -> None:
    words = [sys.executable, str(ROOT / "train.py"), "-m", "model=glob(*)", f"hydra.sweep.dir={tmp_path}"]
    done = subprocess.run([*words, *SMALL, *QUIET], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("val/loss") == len(NAMES)
    for job in range(len(NAMES)):
        assert load_model(tmp_path / str(job)).spec.ndim == 2
