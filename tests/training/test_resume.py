"""A run that is cut off at any step goes on as if nothing had happened."""

import csv
from functools import partial

import pytest
import torch
from lightning.pytorch import Callback
from torch.optim.lr_scheduler import ExponentialLR

from regnet.training.callbacks import EMA, Checkpoint
from tests.training import tiny

pytestmark = tiny.quiet
SCHEDULE = partial(ExponentialLR, gamma=0.5)
EPOCHS, BATCHES = 3, 3


class Cut(Callback):
    """The power goes before a given batch."""

    def __init__(self, at):
        self.at = at

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if trainer.fit_loop.epoch_loop.batch_progress.total.ready - 1 == self.at:
            raise RuntimeError("power cut")


def fit(folder, *callbacks, resume=False, **arguments):
    trainer = tiny.trainer(folder, EPOCHS, **arguments)
    recent = Checkpoint(folder / "checkpoints", "recent", every_n_train_steps=1, enable_version_counter=False)
    trainer.callbacks[-2:] = [*callbacks, *trainer.callbacks[-2:], recent]
    module = tiny.module(SCHEDULE)
    newest = max((folder / "checkpoints").glob("*.ckpt"), key=lambda path: path.stat().st_mtime_ns) if resume else None
    trainer.fit(module, datamodule=tiny.Data(), ckpt_path=newest)
    return module


def curve(folder, *columns):
    """The rows with these columns of all parts of a run; what was computed twice must be the same."""
    rows = {}
    for part in sorted((folder / "csv").glob("version_*/metrics.csv")):
        for row in csv.DictReader(part.read_text("utf-8").splitlines()):
            if row.get(columns[0]):
                values = [row[column] for column in columns]
                assert rows.setdefault(row["step"], values) == values
    return rows


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return folder, fit(folder)


@pytest.mark.parametrize("at", [1, 2, 3, 5, 7])
def test_a_run_that_is_cut_off_goes_on_to_the_same_losses_and_weights(at, whole, tmp_path):
    with pytest.raises(RuntimeError, match="power cut"):
        fit(tmp_path, Cut(at))
    resumed = fit(tmp_path, resume=True)
    for one, other in zip(whole[1].parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, other)
    for columns in (["step/loss"], ["train/loss", "train/lr", "train/similarity"], ["val/loss", "val/dice"]):
        assert curve(tmp_path, *columns) == curve(whole[0], *columns)


def test_averages_and_accumulated_gradients_go_on_too(tmp_path):
    # Two batches a step, and the epoch's third a step of its own: cut off in the middle of a step.
    more = {"accumulate_grad_batches": 2, "gradient_clip_val": 0.1}
    whole = fit(tmp_path / "whole", EMA(decay=0.9), **more)
    with pytest.raises(RuntimeError, match="power cut"):
        fit(tmp_path / "parts", EMA(decay=0.9), Cut(4), **more)
    resumed = fit(tmp_path / "parts", EMA(decay=0.9), resume=True, **more)
    for one, other in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, other)
    for columns in (["train/loss", "train/lr"], ["val/loss", "val/dice"]):
        assert curve(tmp_path / "parts", *columns) == curve(tmp_path / "whole", *columns)
