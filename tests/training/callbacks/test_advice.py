"""Warnings in words."""

from types import SimpleNamespace

import pytest
import torch

from regnet.training.callbacks import Advice
from tests.training import tiny

pytestmark = tiny.quiet


def advice(folder, caplog, epochs=2, module=None, loader=None, after_steps=3):
    trainer = tiny.trainer(folder, epochs, callbacks=[Advice(after_steps)], enable_checkpointing=False)
    trainer.fit(module or tiny.module(), loader or tiny.loader(), tiny.loader())
    return [record.getMessage() for record in caplog.records if record.name == "regnet.training.callbacks.advice"]


def test_a_field_that_stays_at_zero_is_told_once(tmp_path, caplog):
    (said,) = advice(tmp_path, caplog, epochs=3, module=tiny.module(lr=1e-9))
    assert said.startswith("nothing is learned: after 3 steps voxels move by 0.0")
    assert not advice(tmp_path, caplog, after_steps=7)[1:]


def test_a_map_that_folds_is_told(tmp_path, caplog):
    module = tiny.module()
    mirrored = torch.stack([-2 * torch.arange(20.0).view(-1, 1).expand(20, 16), torch.zeros(20, 16)])[None]
    module.model.register_forward_hook(
        lambda _, __, outputs: {**outputs, "displacement": outputs["displacement"] + mirrored}
    )
    said = advice(tmp_path, caplog, module=module)
    assert [one.split(":")[0] for one in said] == ["folding explodes"]
    assert "100.0% of the foreground" in said[0]


@pytest.mark.parametrize(("step", "starves"), [(0.5, True), (2.0, False)])
def test_a_loader_that_is_waited_for_is_told(tmp_path, caplog, monkeypatch, step, starves):
    now = [0.0]
    monkeypatch.setattr("regnet.training.callbacks.advice.time", SimpleNamespace(perf_counter=lambda: now[0]))
    loader, module = tiny.loader(), tiny.module()

    def pass_by(seconds):
        now[0] += seconds

    loader.collate_fn = lambda samples, own=loader.collate_fn: pass_by(1) or own(samples)
    module.model.register_forward_pre_hook(lambda *_: pass_by(step))
    said = advice(tmp_path, caplog, epochs=10, module=module, loader=loader, after_steps=100)
    assert [one.split(":")[0] for one in said] == ["the loader starves the network"] * starves
    assert all("67% of a step" in one for one in said)
