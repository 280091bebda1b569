"""A callback that sends its own process a signal, for tests of the command line too."""

import os
import signal

from lightning.pytorch import Callback


class Send(Callback):
    """Send a signal when the batch after so many steps has begun, or its epoch is validated."""

    def __init__(self, signal_name: str, after: int, validating: bool = False) -> None:
        self.number = getattr(signal, signal_name)
        self.after = after
        self.validating = validating

    def on_train_batch_start(self, trainer, *_):
        self._send(trainer, not self.validating)

    def on_validation_batch_start(self, trainer, *_):
        self._send(trainer, self.validating and not trainer.sanity_checking)

    def _send(self, trainer, here):
        if here and trainer.global_step == self.after:
            os.kill(os.getpid(), self.number)
