"""Pictures for the loggers."""

import numpy as np
import pytest
from lightning.pytorch.loggers.logger import DummyLogger

from regnet.training.callbacks import Panels
from tests.training import tiny

pytestmark = [
    tiny.quiet,
    # tensorboard's own import
    pytest.mark.filterwarnings("ignore::DeprecationWarning:tensorboard.*"),
]


class Album(DummyLogger):
    """A logger that takes pictures as Weights & Biases does."""

    def __init__(self):
        super().__init__()
        self.pictures = []

    def log_image(self, key, images, step):
        self.pictures.append((key, step, images))


def test_one_picture_an_epoch_and_none_of_the_sanity_check(tmp_path):
    album = Album()
    trainer = tiny.trainer(
        tmp_path, 2, logger=album, callbacks=[Panels()], num_sanity_val_steps=2, enable_checkpointing=False
    )
    trainer.fit(tiny.module(), tiny.loader(), tiny.loader())
    assert [(key, step) for key, step, _ in album.pictures] == [("val/panels", 3), ("val/panels", 6)]
    picture = album.pictures[0][2][0]
    assert picture.dtype == np.uint8 and picture.ndim == 3 and picture.shape[2] == 3


def test_tensorboard_gets_it_too(tmp_path):
    loggers = pytest.importorskip("lightning.pytorch.loggers")
    logger = loggers.TensorBoardLogger(tmp_path, "tb", "")
    trainer = tiny.trainer(tmp_path, 1, logger=logger, callbacks=[Panels()], enable_checkpointing=False)
    trainer.fit(tiny.module(), tiny.loader(), tiny.loader())
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(tmp_path / "tb"))
    events.Reload()
    assert events.Tags()["images"] == ["val/panels"]
