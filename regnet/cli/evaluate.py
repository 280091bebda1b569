"""``regnet evaluate``: how good the transforms of a table of pairs are."""

import argparse
import json
import math
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from regnet import __version__
from regnet.cli.options import add_overwrite, add_threads, set_threads
from regnet.cli.output import SOME_FAILED, check_folder, outputs
from regnet.data.landmarks import SPACES
from regnet.data.learn2reg import displacement_names, read_dataset
from regnet.data.table import Pair, read_pairs
from regnet.errors import InputError
from regnet.inference.case import LABELS, Case, Protocol
from regnet.inference.cohort import evaluate_cases
from regnet.inference.meaning import MEANING
from regnet.report import compare, comparison_table, summarise, summary_table
from regnet.report.measures import Row, read_rows, to_json, to_row, write_json, write_rows

_FEW = 3  # labels whose Dice is printed one by one; the files have all
_SUFFIXES = (".nii.gz", ".nii", ".h5", ".mat", ".txt", ".tfm", ".lta", ".mgz", ".npz")
_ANTS = ("1Warp.nii.gz", "0GenericAffine.mat")
_COLUMNS = {
    "dice": ("Dice", ".3f"),
    "hd95_mm": ("HD95\nmm", ".2f"),
    "tre_mm": ("TRE\nmm", ".2f"),
    "lncc": ("LNCC", ".3f"),
    "displacement_mean_mm": ("mean\nmm", ".2f"),
    "displacement_max_mm": ("most\nmm", ".2f"),
    "folding_percent": ("%\nfolded", ".4f"),
    "sdlogj": ("SDlogJ", ".3f"),
    "epe_mean_mm": ("error\nmm", ".2f"),
}


def add_parser(subparsers: Any) -> None:
    """Declare the verb and its options."""
    parser = subparsers.add_parser(
        "evaluate",
        help="measure transforms of a table of pairs",
        description="Measure how well transforms bring the moving images of a table to the fixed ones. The fixed mask "
        "is the table's fixed_mask, else where the fixed image is above its background. Labels are warped once, from "
        "the moving image's own grid.",
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--pairs", type=Path, metavar="TABLE", help="table of pairs (CSV)")
    source.add_argument(
        "--dataset",
        type=Path,
        metavar="JSON",
        help="NAME_dataset.json or evaluation_config.json of Learn2Reg; its transforms are disp_FIXED_MOVING.nii.gz or "
        ".npz in voxels",
    )
    parser.add_argument(
        "--transforms",
        required=True,
        metavar="DIR",
        help="folder with ID_warp.nii.gz or ID.nii.gz for each id of the table: maps fixed -> moving; or ANTs' "
        "ID_1Warp.nii.gz and ID_0GenericAffine.mat; beside them ID_inverse_warp.nii.gz, moving -> fixed, if there is "
        "one; none: measure the images as they lie in the world",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder for cases.csv, summary.json and cases/ID.json; goes on there"
    )
    parser.add_argument(
        "--against", type=Path, metavar="RUN", help="another run's --out or its cases.csv: test the difference"
    )
    parser.add_argument("--split", help="only the rows of this split; of a dataset train, val (default) or test")
    parser.add_argument(
        "--labels",
        choices=LABELS,
        help="how labels are warped: nearest (default of --pairs); linear: the label that weighs most among the "
        "neighbours; learn2reg: nearest, nothing beyond the outer voxels' centres (default of --dataset)",
    )
    parser.add_argument(
        "--space",
        choices=SPACES,
        help="of the landmarks: mm (ras, lps) or voxels counted from 0 or 1; default: as their files say; voxel for "
        "--dataset",
    )
    parser.add_argument("--jobs", type=int, default=1, help="pairs measured at a time; default: 1")
    add_threads(parser)
    add_overwrite(parser)


def run(args: argparse.Namespace) -> int:
    """Do what the options say; errors are raised for :func:`regnet.cli.main.main` to tell."""
    set_threads(args.threads)
    if args.jobs < 1:
        raise InputError(f"--jobs {args.jobs}: at least 1 is needed")
    if args.out is not None:
        check_folder(args.out, "--out")
    usual = Protocol("learn2reg", "voxel") if args.dataset else Protocol()
    protocol = Protocol(args.labels or usual.labels, args.space or usual.space)
    cases, failed = _cases(_pairs(args), args.transforms)
    against = _rows_of(args.against, protocol.labels)
    written = [args.out / "cases.csv", args.out / "summary.json"] if args.out else []
    with outputs(written, args.overwrite, [args.pairs, args.dataset, args.against]):
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task("evaluating", total=len(cases))
            keep = args.out / "cases" if args.out else None
            found, unmeasured = evaluate_cases(cases, protocol, keep, args.jobs, lambda: bar.advance(task))
        failed |= unmeasured
        if not found:
            told = next(iter(failed.values()))
            raise InputError(
                told if len(failed) == 1 else f"none of {len(failed)} pairs can be measured; first: {told}"
            )
        rows = [to_row(case, measures) for case, measures in found.items()]
        comparison = compare(rows, against, list(MEANING)) if against else {}
        if args.out:
            write_rows(written[0], rows)
            content = {
                "name": (args.pairs or args.dataset).stem,
                "aggregates": summarise(rows),
                "cases": {case: to_json(measures) for case, measures in found.items()},
                "against": comparison,
                "failed": failed,
                "columns": {name: text for name, text in MEANING.items() if any(name in row for row in rows)},
                "regnet": __version__,
                "source": str(args.pairs or args.dataset),
                "transforms": args.transforms,
                "labels": protocol.labels,
            }
            write_json(written[1], content)
    _print_summary(f"{len(rows)} {'pair' if len(rows) == 1 else 'pairs'}, transforms: {args.transforms}", rows)
    if args.against:
        Console().print(comparison_table(f"against {args.against}", _COLUMNS, comparison))
    for path in written:
        print(path)
    for name, why in failed.items():
        print(f"regnet: failed: {name}: {why}", file=sys.stderr)
    return SOME_FAILED if failed else 0


def _pairs(args: argparse.Namespace) -> list[Pair]:
    if args.dataset:
        return list(read_dataset(args.dataset, args.split))
    pairs = [pair for pair in read_pairs(args.pairs) if args.split in (None, pair.split)]
    if not pairs:
        raise InputError(f"{args.pairs}: no row has the split {args.split!r}")
    return pairs


def _cases(pairs: Sequence[Pair], folder: str) -> tuple[list[Case], dict[str, str]]:
    """Each pair with its files; and of those without a transform, by id, what is missing."""
    if folder == "none":
        return [Case(pair) for pair in pairs], {}
    if not Path(folder).is_dir():
        raise InputError(f"{folder}: no such folder of transforms (or give --transforms none)")
    cases, missing = [], {}
    for pair in pairs:
        names = [f"{pair.id}_warp", pair.id, f"{pair.id}_composite", *displacement_names(pair)]
        there = _first(Path(folder), names) or _ants(Path(folder), pair.id)
        if not there:
            wanted = " or ".join(f"{name}.nii.gz" for name in (names[0], names[3] if names[3:] else names[1]))
            missing[pair.id] = f"{folder}: no transform for {pair.id!r}; {wanted} is needed"
            continue
        back = _first(Path(folder), [f"{pair.id}_inverse_warp"])
        cases.append(Case(pair, there, back[0] if back else None))
    return cases, missing


def _first(folder: Path, names: Sequence[str]) -> tuple[Path, ...]:
    """The first of these files that exists, if any does."""
    files = (folder / (name + suffix) for name in names for suffix in _SUFFIXES)
    return next(((file,) for file in files if file.is_file()), ())


def _ants(folder: Path, name: str) -> tuple[Path, ...]:
    """What ANTs and `regnet register --prefix` leave: a warp, an affine map, or both, which come in this order."""
    found = [tuple(folder / f"{name}{joint}{end}" for end in _ANTS) for joint in ("_", "")]
    return next((there for files in found if (there := tuple(file for file in files if file.is_file()))), ())


def _rows_of(run: Path | None, labels: str) -> list[Row]:
    """Another run's figures, with a warning if its labels were warped in another way than ``labels``."""
    if run is None:
        return []
    table = run / "cases.csv" if run.is_dir() else run
    if not table.is_file():
        raise InputError(f"{table}: no such file; --against takes the --out of another `regnet evaluate`")
    with suppress(OSError, ValueError, AttributeError):  # without its summary nothing is known
        theirs = json.loads(table.with_name("summary.json").read_text(encoding="utf-8")).get("labels", labels)
        if theirs != labels:
            warnings.warn(
                f"{run}: was measured with --labels {theirs}, this run with {labels}: overlap and surface distances "
                "differ by that alone",
                stacklevel=2,
            )
    return read_rows(table)


def _print_summary(title: str, rows: Sequence[Row]) -> None:
    """Print the main columns, with Dice per label where there are few labels."""
    labels = {column: ("Dice\n" + column[5:], ".3f") for row in rows for column in row if column.startswith("dice_")}
    columns = {"dice": _COLUMNS["dice"], **(labels if len(labels) <= _FEW else {})} | _COLUMNS
    seen = {name for row in rows for name, cell in row.items() if isinstance(cell, float) and math.isfinite(cell)}
    Console().print(summary_table(title, {name: form for name, form in columns.items() if name in seen}, rows))
