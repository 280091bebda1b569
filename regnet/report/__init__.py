"""Pictures, tables and statistics of results."""

import importlib
from typing import TYPE_CHECKING, Any

from regnet.report.statistics import bootstrap, compare, summarise
from regnet.report.table import comparison_table, summary_table

if TYPE_CHECKING:
    from regnet.report.panels import four_panels, six_panels

__all__ = ["bootstrap", "compare", "comparison_table", "four_panels", "six_panels", "summarise", "summary_table"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: drawing needs matplotlib, tables do not.
    if name in ("four_panels", "six_panels"):
        return getattr(importlib.import_module("regnet.report.panels"), name)
    raise AttributeError(f"module 'regnet.report' has no attribute {name!r}")
