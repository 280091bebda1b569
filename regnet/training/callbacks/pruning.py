"""Ends a trial of a search that is hopeless."""

from pathlib import Path

import lightning.pytorch as pl

from regnet.sweeps import costs


class Pruning(pl.Callback):
    """After each validation, ask the study whether to go on; the sweeper adds this to each trial of a search.

    Args:
        folder: of the sweep, where its study is.
        number: of this trial.
        objective: what trials are compared by; see ``regnet.sweeps.costs``.
        prune_after: trials to finish before one that is worse than their median at the same epoch is ended.
    """

    def __init__(self, folder: str, number: int, objective: str, prune_after: int) -> None:
        self.folder = Path(folder)
        self.number = number
        self.objective = objective
        self.prune_after = prune_after
        self.pruned = False

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Ask."""
        if trainer.sanity_checking or trainer.state.fn != "fit":
            return
        hopeless = False
        if trainer.is_global_zero:
            from regnet.sweeps.study import is_hopeless  # Optuna takes a second to load

            logged = {name: float(value) for name, value in trainer.callback_metrics.items()}
            (cost,) = costs(logged, [self.objective]).values()
            hopeless = is_hopeless(self.folder, self.number, trainer.current_epoch, cost, self.prune_after)
        self.pruned = trainer.strategy.reduce_boolean_decision(hopeless, all=False)
        trainer.should_stop = trainer.should_stop or self.pruned
