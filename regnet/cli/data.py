"""``regnet data check``: what is wrong with the files of a study."""

import argparse
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from regnet import __version__
from regnet.cli.options import add_overwrite
from regnet.cli.output import outputs
from regnet.data.check import Finding, count_files, findings, read_files
from regnet.data.facts import Facts
from regnet.data.sources import read_rows
from regnet.errors import InputError
from regnet.report.measures import write_json

_SHOWN = 5  # places that are printed of a finding; the JSON has all
_FOUND = 1  # exit status


def add_parser(subparsers: Any) -> None:
    """Declare the verb and its options."""
    parser = subparsers.add_parser(
        "data", help="check the files of a study", description="Work on the data of a study."
    )
    verbs = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    check = verbs.add_parser(
        "check",
        help="read every file once and say what is wrong",
        description="Read every file of a table once: shapes, spacings, orientations, intensities, labels, copies, "
        "overlap of the splits; and what to do about each finding. The exit status is 1 if a finding would stop or "
        "spoil a training, else 0.",
    )
    check.add_argument("table", type=Path, metavar="TABLE", help="CSV or JSON table, or a Learn2Reg NAME_dataset.json")
    check.add_argument("--out", type=Path, metavar="JSON", help="write all that was found")
    check.add_argument("--jobs", type=int, default=min(8, os.cpu_count() or 1), help="files read at a time")
    add_overwrite(check)


def run(args: argparse.Namespace) -> int:
    """Do what the options say; errors are raised for :func:`regnet.cli.main.main` to tell."""
    if args.jobs < 1:
        raise InputError(f"--jobs {args.jobs}: at least 1 is needed")
    rows = read_rows(args.table, files=False)
    with outputs([args.out] if args.out else [], args.overwrite, [args.table]):
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task("reading", total=count_files(rows))
            facts = read_files(rows, args.jobs, lambda: bar.advance(task))
        found = findings(rows, facts)
        if args.out:
            write_json(args.out, _content(args.table, len(rows), facts, found))
    out = Console()
    out.print(_images(facts))
    if found:
        out.print(_findings(found))
    errors = [finding for finding in found if finding.severity == "error"]
    rest = len(found) - len(errors)
    print(f"{args.table}: {len(rows)} rows, {len(facts)} files, {len(errors)} errors, {rest} other findings")
    if args.out:
        print(args.out)
    return _FOUND if errors else 0


def _content(table: Path, rows: int, facts: Mapping[Path, Facts], found: Sequence[Finding]) -> dict[str, Any]:
    return {
        "table": str(table),
        "rows": rows,
        "findings": [vars(finding) | {"where": list(finding.where)} for finding in found],
        "files": {str(path): fact.to_dict() for path, fact in facts.items()},
        "regnet": __version__,
    }


def _images(facts: Mapping[Path, Facts]) -> Table:
    """How many images there are of each kind."""
    table = Table(title="Images", box=box.SIMPLE_HEAD, pad_edge=False, title_style="bold")
    for name in ("shape", "spacing (mm)", "axes", "values", "images"):
        table.add_column(name, justify="right")
    kinds: dict[tuple[str, str, str], list[Facts]] = {}
    for fact in facts.values():
        if fact.kind == "image" and fact.grid:
            shape = " x ".join(map(str, fact.grid.shape))
            spacing = " x ".join(f"{step:.3g}" for step in fact.grid.spacing)
            kinds.setdefault((shape, spacing, fact.grid.orientation), []).append(fact)
    numbers = Counter({kind: len(own) for kind, own in kinds.items()})
    for kind, number in numbers.most_common(20):
        low, high = min(fact.low for fact in kinds[kind]), max(fact.high for fact in kinds[kind])
        table.add_row(*kind, f"{low:.4g} to {high:.4g}", str(number))
    if len(kinds) > 20:
        table.add_row(f"… {len(kinds) - 20} more", *[""] * 4)
    return table


def _findings(found: Sequence[Finding]) -> Table:
    table = Table(title="Findings", box=box.SIMPLE_HEAD, pad_edge=False, title_style="bold")
    for name in ("", "found", "where", "what to do"):
        table.add_column(name, overflow="fold")
    for finding in found:
        shown = [*finding.where[:_SHOWN]]
        if len(finding.where) > _SHOWN:
            shown.append(f"… {len(finding.where) - _SHOWN} more")
        table.add_row(finding.severity, finding.name, "\n".join(shown), finding.remedy)
    return table
