"""``regnet doctor``: looks for the common faults of an installation, and says what cures each."""

import argparse
from typing import Any

from rich.console import Console
from rich.table import Table

from regnet.cli.checks import CHECKS

_MARKS = {"good": "[green]good[/]", "note": "[cyan]note[/]", "fault": "[red]fault[/]"}


def add_parser(subparsers: Any) -> None:
    """Declare the verb; it has no options."""
    text = "look for what commonly goes wrong, and say what cures it"
    subparsers.add_parser("doctor", help=text, description=__doc__)


def run(args: argparse.Namespace) -> int:
    """Print what was found; the status is 1 if something would keep regnet from working."""
    found = [finding for check in CHECKS for finding in check()]
    table = Table("", "what", "found", "cure", title="regnet doctor")
    for finding in found:
        table.add_row(_MARKS[finding.kind], finding.what, finding.found, finding.cure)
    Console().print(table)
    return int(any(finding.kind == "fault" for finding in found))
