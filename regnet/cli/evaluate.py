"""``regnet evaluate``: how good the transforms of a table of pairs are."""

import argparse
import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.progress import track
from torch import Tensor

from regnet import __version__, metrics
from regnet.cli.options import add_overwrite, add_threads, background_of, check_axes, foreground_of, set_threads
from regnet.cli.output import outputs
from regnet.data.datasets import read_channels
from regnet.data.prepare import check_same_grid
from regnet.data.table import Pair, read_pairs
from regnet.errors import InputError
from regnet.inference import check_pair
from regnet.io import Image, atomic_path, check_image, read_image, read_labels, read_transform
from regnet.losses import lncc
from regnet.report import summarise, summary_table
from regnet.spatial import Displacement

Row = dict[str, str | float]

_FEW = 3  # labels whose Dice is printed one by one; the files have all
_SUFFIXES = ("_warp.nii.gz", ".nii.gz", "_warp.nii", ".nii")
_COLUMNS = {
    "dice": ("Dice", ".3f"),
    "hd95_mm": ("HD95\nmm", ".2f"),
    "lncc": ("LNCC", ".3f"),
    "displacement_mean_mm": ("mean\nmm", ".2f"),
    "displacement_max_mm": ("most\nmm", ".2f"),
    "folding_percent": ("%\nfolded", ".4f"),
    "sdlogj": ("SDlogJ", ".3f"),
    "epe_mean_mm": ("error\nmm", ".2f"),
}
_MEANING = {
    "dice": "mean over the labels; dice_L is label L; 1 is best",
    "hd95_mm": "mean over the labels of the 95 % Hausdorff distance of surface voxels; hd95_mm_L is label L",
    "lncc": "mean squared local correlation of moved and fixed image, window 9; 1 is best",
    "displacement_mean_mm": "inside the fixed mask",
    "displacement_max_mm": "inside the fixed mask",
    "folding_percent": "voxels with Jacobian determinant <= 0 inside the fixed mask",
    "folding_percent_grid": "the same on the whole grid, which flatters",
    "sdlogj": "standard deviation of the logarithm of the Jacobian determinant inside the fixed mask",
    "sdlogj_grid": "the same on the whole grid, which flatters",
    "epe_mean_mm": "mean distance from the true displacement (column true_warp) inside the fixed mask",
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
    parser.add_argument("--pairs", type=Path, required=True, help="table of pairs (CSV)")
    parser.add_argument(
        "--transforms",
        required=True,
        metavar="DIR",
        help="folder with ID_warp.nii.gz or ID.nii.gz for each id of the table: displacements, fixed -> moving; "
        "none: measure the images as they lie in the world",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for cases.csv and summary.json")
    parser.add_argument("--split", help="only the rows of this split")
    parser.add_argument(
        "--labels",
        choices=("nearest", "linear"),
        default="nearest",
        help="how labels are warped: nearest (default), or linear: the label that weighs most among the neighbours",
    )
    add_threads(parser)
    add_overwrite(parser)


def run(args: argparse.Namespace) -> int:
    """Do what the options say; errors are raised for :func:`regnet.cli.main.main` to tell."""
    set_threads(args.threads)
    pairs = [pair for pair in read_pairs(args.pairs) if args.split in (None, pair.split)]
    if not pairs:
        raise InputError(f"{args.pairs}: no row has the split {args.split!r}")
    files = _transform_files(pairs, args.transforms)
    written = [args.out / "cases.csv", args.out / "summary.json"] if args.out else []
    with outputs(written, args.overwrite, [args.pairs]):
        console = Console(stderr=True)
        jobs = track(
            list(zip(pairs, files, strict=True)),
            "evaluating",
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        rows = [evaluate_pair(pair, file, args.labels) for pair, file in jobs]
        if args.out:
            _write_cases(written[0], rows)
            _write_summary(written[1], rows, args)
    _print_summary(f"{len(rows)} {'pair' if len(rows) == 1 else 'pairs'}, transforms: {args.transforms}", rows)
    for path in written:
        print(path)
    return 0


def evaluate_pair(pair: Pair, transform: Path | None, labels: str = "nearest") -> Row:
    """Measure one pair.

    Args:
        pair: a row of the table.
        transform: the displacement file, fixed -> moving; None is the identity.
        labels: how labels are warped, ``"nearest"`` or ``"linear"``.

    Returns:
        ``id`` and the columns that this pair has the files for.

    Raises:
        InputError: a file cannot be used.
    """
    fixed, moving = check_image(read_channels(pair.fixed)), check_image(read_channels(pair.moving))
    check_pair(moving, fixed)
    there = Displacement.identity(fixed.grid) if transform is None else _on(transform, fixed)
    flow, mask = there.flow[None], _mask(pair, fixed)
    row: Row = {"id": pair.id}
    if pair.moving_labels and pair.fixed_labels:
        row |= _overlap(there, _labels(pair.moving_labels, moving), _labels(pair.fixed_labels, fixed), labels)
    moved = there.apply(moving.data[None], moving.grid, background=background_of(moving))
    row["lncc"] = 1 - float(lncc(moved, fixed.data[None]))
    length = metrics.displacement_statistics(flow, fixed.grid.spacing, mask)
    row["displacement_mean_mm"], row["displacement_max_mm"] = length["mean"], length["max"]
    inside, everywhere = metrics.jacobian_statistics(flow, mask, None)
    row["folding_percent"], row["folding_percent_grid"] = 100 * inside["folding"], 100 * everywhere["folding"]
    row["sdlogj"], row["sdlogj_grid"] = inside["sdlogj"], everywhere["sdlogj"]
    if pair.true_warp:
        truth = _on(pair.true_warp, fixed).flow[None]
        row["epe_mean_mm"] = metrics.endpoint_error(flow, truth, fixed.grid.spacing, mask)
    return row


def _print_summary(title: str, rows: Sequence[Row]) -> None:
    """Print the main columns, with Dice per label where there are few labels."""
    labels = {column: ("Dice\n" + column[5:], ".3f") for row in rows for column in row if column.startswith("dice_")}
    columns = {"dice": _COLUMNS["dice"], **(labels if len(labels) <= _FEW else {})} | _COLUMNS
    shown = {column: form for column, form in columns.items() if any(column in row for row in rows)}
    Console().print(summary_table(title, shown, rows))


def _transform_files(pairs: Sequence[Pair], folder: str) -> list[Path | None]:
    """The displacement file of each pair."""
    if folder == "none":
        return [None] * len(pairs)
    if not Path(folder).is_dir():
        raise InputError(f"{folder}: no such folder of transforms (or give --transforms none)")
    found: list[Path | None] = []
    for pair in pairs:
        names = [Path(folder) / (pair.id + suffix) for suffix in _SUFFIXES]
        existing = [name for name in names if name.is_file()]
        if not existing:
            raise InputError(f"{folder}: no transform for {pair.id!r}; {names[0].name} or {names[1].name} is needed")
        found.append(existing[0])
    return found


def _on(path: Path, fixed: Image) -> Displacement:
    """The map of a displacement file at the voxels of the fixed image."""
    transform = read_transform(path)
    check_axes(path, transform, fixed)
    if isinstance(transform, Displacement) and transform.grid.matches(fixed.grid):
        return Displacement(transform.flow, fixed.grid)
    return transform.on(fixed.grid)


def _labels(path: Path, image: Image) -> Image:
    labels = read_labels(path)
    check_same_grid(labels, image.grid, image.name)
    return labels


def _mask(pair: Pair, fixed: Image) -> Tensor:
    """The fixed mask, ``(1, 1, *spatial)``."""
    if pair.fixed_mask is None:
        return foreground_of(fixed)
    mask = read_image(pair.fixed_mask)
    check_same_grid(mask, fixed.grid, fixed.name)
    return mask.data[None] > 0


def _overlap(there: Displacement, moving: Image, fixed: Image, mode: str) -> Row:
    """Dice and HD95 of each label and their means."""
    moved = there.apply_labels(moving.data[None], moving.grid, mode=mode)[0, 0]
    target = fixed.data[0]
    row: Row = {}
    found = {"dice": metrics.dice(moved, target), "hd95_mm": metrics.hd95(moved, target, fixed.grid.spacing)}
    for name, values in found.items():
        finite = [value for value in values.values() if not math.isnan(value)]
        row[name] = fmean(finite) if finite else math.nan
        row |= {f"{name}_{label}": value for label, value in values.items()}
    return row


def _write_cases(path: Path, rows: Sequence[Row]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    with atomic_path(path, overwrite=True) as temporary, temporary.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(names)
        writer.writerows([[_csv_cell(row.get(name, "")) for name in names] for row in rows])


def _csv_cell(value: str | float) -> str:
    """Text of a cell; what is not a number is left blank."""
    if isinstance(value, str):
        return value
    return f"{value:.6g}" if math.isfinite(value) else ""


def _write_summary(path: Path, rows: Sequence[Row], args: argparse.Namespace) -> None:
    content = {
        "regnet": __version__,
        "pairs": str(args.pairs),
        "transforms": args.transforms,
        "labels": args.labels,
        "columns": {name: text for name, text in _MEANING.items() if any(name in row for row in rows)},
        "summary": summarise(rows),
        "cases": [
            {name: value if isinstance(value, str) or math.isfinite(value) else None for name, value in row.items()}
            for row in rows
        ],
    }
    with atomic_path(path, overwrite=True) as temporary:
        temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
