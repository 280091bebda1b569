"""The network that comes with regnet, and others, beside the affine stage that they all start from.

Usage: ``python benchmarks/shipped_model.py DATA [--models RUN_OR_FILE ...] [--pairs NAME ...] [--refine N ...]
       [--smoothness L] [--head ch2.nii.gz] [--threads 2] [--out FILE.json]``

DATA and the pairs are those of ``registration.py``: ``tissue`` and ``mirror``; ``inverted`` and ``gamma`` are tissue
with MNI152's grey values turned upside down, or squared; ``head`` is ``mirror`` of the whole head (``--head``, Debian's
mricron-data). Dice is the mean over the labels; SDlogJ and folding are of the deformation alone, in the fixed brain;
seconds without the affine stage, whose row has its own. With ``--refine``, each network and no network at all are
refined so often; ``objective`` is the least that the refinement saw in its last three steps.
"""

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

import torch
from registration_pairs import Pair, mirror_pair, mirrored_head, relooked, tissue_pair
from rich.console import Console
from rich.table import Table

from regnet.inference import LoadedModel, Result, find, load_model, shipped_model
from regnet.inference.initial import initial
from regnet.io import check_image, read_image, read_labels
from regnet.metrics import dice, jacobian_statistics
from regnet.spatial import Displacement

PAIRS = ("tissue", "inverted", "gamma", "mirror", "head")


@dataclass(frozen=True)
class Row:
    """One row."""

    pair: str
    method: str
    dice: float
    over_affine: float
    folding_percent: float
    sdlogj: float
    seconds: float
    objective: float | None = None


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the 1 mm brains")
    parser.add_argument("--models", nargs="+", type=Path, default=[shipped_model()], help="default: the shipped one")
    parser.add_argument("--pairs", nargs="+", choices=PAIRS, default=PAIRS[:-1], help="default: all but head")
    parser.add_argument("--refine", nargs="+", type=int, default=[], help="rows with so many steps")
    parser.add_argument("--smoothness", type=float, default=0.5, help="of the refinement")
    parser.add_argument("--head", type=Path, help="ch2.nii.gz")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    models = {path.stem if path.is_file() else path.name: load_model(path) for path in args.models}
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for which in args.pairs:
            rows += measure(make(which, args.data, Path(folder), args.head), models, args.refine, args.smoothness)
    Console(width=150).print(as_table(rows, args.threads))
    if args.out is not None:
        args.out.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n", encoding="utf-8")
    return 0


def make(which: str, data: Path, folder: Path, head: Path | None) -> Pair:
    """A pair by its name."""
    if which == "mirror":
        return mirror_pair(data, folder)
    if which == "head":
        if head is None:
            raise SystemExit("--pairs head needs --head ch2.nii.gz")
        return mirrored_head(mirror_pair(data, folder), head, folder / "head.nii.gz")
    pair = tissue_pair(data, folder)
    if which == "inverted":
        return relooked(pair, which, lambda grey: 1 - grey, folder / "inverted.nii.gz")
    return pair if which == "tissue" else relooked(pair, which, torch.square, folder / "gamma.nii.gz")


def measure(pair: Pair, models: dict[str, LoadedModel], steps: list[int], smoothness: float) -> list[Row]:
    """The rows of a pair."""
    moving, fixed = (check_image(read_image(path)) for path in (pair.moving, pair.fixed))
    labels, truth = read_labels(pair.moving_labels), read_labels(pair.fixed_labels)
    brain = (truth.data > 0)[None]
    began = time.perf_counter()
    start = initial(moving, fixed, "affine", None)
    rows: list[Row] = []

    def add(method: str, result: Result, seconds: float, objective: float | None) -> None:
        moved = result.transform.apply_labels(labels.data[None], labels.grid, truth.grid)
        score = fmean(dice(moved[0, 0].long(), truth.data[0].long(), list(pair.labels)).values())
        (inside,) = jacobian_statistics(result.forward.flow[None], brain)
        above = score - rows[0].dice if rows else 0.0
        rows.append(Row(pair.name, method, score, above, 100 * inside["folding"], inside["sdlogj"], seconds, objective))

    still = Displacement.identity(fixed.grid.with_shape((1, 1, 1)))
    add("affine only", Result(start, still, fixed.grid), time.perf_counter() - began, None)
    for name, model in (("none", None), *models.items()):
        for count in [*([0] if model else []), *steps]:
            losses: list[float] = []
            began = time.perf_counter()
            result = find(
                moving,
                fixed,
                model,
                count,
                init="none",
                initial_transform=start,
                smoothness=smoothness,
                progress=lambda done, of, loss: losses.append(loss),  # noqa: B023
            )
            method = f"{name} + refine {count}" if count else name
            add(method, result, time.perf_counter() - began, min(losses[-3:]) if losses else None)
    return rows


def as_table(rows: list[Row], threads: int) -> Table:
    """Rows for people."""
    headers = ("pair", "method", "Dice", "over affine", "% folded", "SDlogJ", "seconds", "objective")
    forms = ("{}", "{}", "{:.3f}", "{:+.3f}", "{:.4f}", "{:.3f}", "{:.1f}", "{:.4f}")
    table = Table(*headers, title=f"{threads} threads")
    for row in rows:
        cells = asdict(row).values()
        table.add_row(*("" if cell is None else form.format(cell) for form, cell in zip(forms, cells, strict=True)))
    return table


if __name__ == "__main__":
    sys.exit(main())
