"""Where Hydra looks for sweepers: the namespace ``hydra_plugins``. `regnet train` puts the folder above on the path."""

from regnet.cli.sweep.sweeper import Sweep


class RegnetSweeper(Sweep):
    """The sweeper of ``regnet train -m``; Hydra wants it to be defined here."""
