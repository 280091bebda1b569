"""Pictures and tables of results."""

from regnet.report.panels import four_panels
from regnet.report.table import summarise, summary_table

__all__ = ["four_panels", "summarise", "summary_table"]
