"""Sweeps: what is tried, what each trial came to, and what is tried next (`study.py`, by Optuna)."""

from regnet.sweeps.objectives import costs, finite, quality, refuse_loss
from regnet.sweeps.space import Choice, Interval, Space, from_plain, grid, to_plain
from regnet.sweeps.trials import (
    Trial,
    best,
    pareto,
    read_metrics,
    read_sweep,
    read_trials,
    write_metrics,
    write_results,
    write_sweep,
    write_trial,
)

__all__ = [
    "Choice",
    "Interval",
    "Space",
    "Trial",
    "best",
    "costs",
    "finite",
    "from_plain",
    "grid",
    "pareto",
    "quality",
    "read_metrics",
    "read_sweep",
    "read_trials",
    "refuse_loss",
    "to_plain",
    "write_metrics",
    "write_results",
    "write_sweep",
    "write_trial",
]
