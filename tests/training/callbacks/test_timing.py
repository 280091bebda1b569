"""The parts of a step."""

import time

import pytest
from lightning.pytorch.loggers.logger import DummyLogger

from regnet.training.callbacks import Timing
from tests.training import tiny

pytestmark = tiny.quiet


class Book(DummyLogger):
    """A logger that keeps what it is told."""

    def __init__(self):
        super().__init__()
        self.rows = []

    def log_metrics(self, metrics, step):
        self.rows.append((step, metrics))


def test_the_parts_of_a_step_add_up_and_each_has_its_own_time(tmp_path):
    book, module = Book(), tiny.module()
    slow = {
        "network": (module.model.network, 0.02),
        "deformation": (module.model.head, 0.04),
        "loss": (module.loss, 0.06),
    }
    for part, seconds in slow.values():
        part.register_forward_pre_hook(lambda *_, seconds=seconds: time.sleep(seconds))
    loader = tiny.loader()
    loader.collate_fn = lambda samples, own=loader.collate_fn: time.sleep(0.08) or own(samples)
    # The hooks that time a part must come before those that slow it down.
    timing = Timing(every_n_steps=2)
    module.on_train_start = lambda: [
        part._forward_pre_hooks.move_to_end(next(iter(part._forward_pre_hooks))) for part, _ in slow.values()
    ]
    trainer = tiny.trainer(tmp_path, 2, logger=book, callbacks=[timing], enable_checkpointing=False)
    trainer.fit(module, loader, tiny.loader())
    timed = [row for _, row in book.rows if "time/step" in row]
    assert len(timed) == 2  # one in each epoch of three steps
    for row in timed:
        parts = {name: row[f"time/{name}"] for name in ("data", "network", "deformation", "loss", "backward")}
        assert sum(parts.values()) == pytest.approx(row["time/step"], rel=1e-3)
        assert parts["data"] > 0.08 and parts["backward"] > 0
        for name, (_, seconds) in slow.items():
            assert parts[name] > seconds
        assert row["memory/GiB"] >= 0
    assert not module.loss._forward_hooks and not module.model._forward_hooks
