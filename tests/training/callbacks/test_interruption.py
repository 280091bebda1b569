"""Signals in the middle of training."""

import signal
import sys

import pytest
import torch

from regnet.io import read_checkpoint
from regnet.training.callbacks import Interruption
from regnet.training.callbacks.interruption import Interrupted
from tests.training import tiny
from tests.training.send import Send
from tests.training.slurm import fake_slurm

pytestmark = [
    tiny.quiet,
    pytest.mark.skipif(sys.platform == "win32", reason="signals"),
]


def fit(folder, epochs, *callbacks, resume=None):
    trainer = tiny.trainer(folder, epochs)
    trainer.callbacks += [*callbacks, Interruption(folder / "checkpoints")]
    module = tiny.module()
    trainer.fit(module, datamodule=tiny.Data(), ckpt_path=resume)
    return module


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return fit(tmp_path_factory.mktemp("whole"), 2)


def assert_same(one, other):
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize(
    ("name", "after", "validating", "left"),
    [("SIGINT", 1, False, "recent"), ("SIGTERM", 0, False, "recent"), ("SIGTERM", 3, True, "recent")],
)
def test_a_signal_leaves_a_checkpoint_that_goes_on_to_the_same_weights(
    name, after, validating, left, whole, tmp_path, capfd
):
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)}
    with pytest.raises(Interrupted) as stop:
        fit(tmp_path, 2, Send(name, after, validating))
    assert stop.value.code == 128 + getattr(signal, name)
    assert {number: signal.getsignal(number) for number in before} == before
    path = tmp_path / "checkpoints" / f"{left}.ckpt"
    assert read_checkpoint(path)["global_step"] == (after if validating else after + 1)
    assert_same(fit(tmp_path, 2, resume=path), whole)
    assert ("Ctrl-C again ends at once" in capfd.readouterr().err) == (name == "SIGINT")


def test_a_signal_in_the_last_validation_lets_the_run_finish(tmp_path):
    fit(tmp_path, 1, Send("SIGTERM", 3, validating=True))
    assert not (tmp_path / "checkpoints" / "recent.ckpt").exists()


def test_a_second_ctrl_c_ends_at_once(tmp_path):
    with pytest.raises(SystemExit) as stop:
        fit(tmp_path, 1, Send("SIGINT", 1), Send("SIGINT", 1))
    assert not isinstance(stop.value, Interrupted) and isinstance(stop.value.__context__, KeyboardInterrupt)
    assert not (tmp_path / "checkpoints").exists()


@pytest.mark.parametrize("twice", [False, True])
def test_slurm_requeues_a_job_that_is_told_to_end_in_the_middle_of_an_epoch(twice, whole, tmp_path, monkeypatch):
    told = fake_slurm(tmp_path / "slurm", monkeypatch)
    with pytest.raises(Interrupted):
        fit(tmp_path, 2, Send("SIGUSR1", 0))
    assert told.read_text("utf-8") == "requeue 7\n"
    saved = tmp_path / "hpc_ckpt_1.ckpt"
    if twice:
        with pytest.raises(Interrupted):
            fit(tmp_path, 2, Send("SIGUSR1", 1), resume=saved)
        saved = tmp_path / "hpc_ckpt_2.ckpt"
    assert list(tmp_path.glob("hpc_ckpt_*")) == [saved]
    assert read_checkpoint(saved)["global_step"] == 1 + twice
    assert_same(fit(tmp_path, 2, resume=saved), whole)
