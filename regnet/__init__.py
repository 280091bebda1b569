"""regnet: train deformable registration networks and run them on NIfTI volumes."""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from regnet.inference.load import load_model
    from regnet.inference.register import register

# Loaded on first use, so that `import regnet` stays quick and pulls in no lightning, hydra, wandb or matplotlib.
_LAZY = {"register": "regnet.inference", "load_model": "regnet.inference"}
_PACKAGES = ("ops", "spatial", "io", "losses", "metrics", "models", "data", "training", "inference", "report")

__all__ = ["__version__", "load_model", "register"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    if name in _PACKAGES:
        return importlib.import_module(f"regnet.{name}")
    raise AttributeError(f"module 'regnet' has no attribute {name!r}")
