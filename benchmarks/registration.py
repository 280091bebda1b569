"""Registration of two real brains, whole commands timed, beside other programs in the same run.

Usage: ``python benchmarks/registration.py DATA [--pairs NAME ...] [--peers] [--model RUN] [--refine 100]
       [--smoothness L ...] [--threads 2] [--out FILE.json]``

DATA holds ``colin27_t1``, ``mni152_t1``, ``mni152_gm``, ``mni152_wm`` and ``colin27_aal`` (``.nii.gz``, 1 mm) and
``colin27_aal.txt``. Three things judge, none of them alone:

- ``tissue``: Dice of grey and white matter, Colin27 to MNI152. An over-fitted map has the best; see SDlogJ beside it.
- ``mirror``: mean Dice of 108 AAL regions, Colin27 to its own mirror image, left and right exchanged.
- ``known``: distance in mm from a known smooth deformation, in the brain; contrast and noise differ.

``sample`` is ``tissue`` at 2 mm, of the brains that regnet ships; ``stored`` is ``tissue`` with Colin27 first stored as
LAS, 2 x 2 x 2.5 mm, on a grid turned by 7 degrees, int16 with slope and intercept. SDlogJ and folding are of the
deformation without the affine map, in the fixed brain. Labels are warped once, by nearest neighbour, by regnet, with
the files that each program writes. ``--smoothness`` with several numbers gives a curve.
"""

import argparse
import json
import platform
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from registration_methods import Found, Method, methods
from registration_pairs import Pair, known_pair, mirror_pair, sample_pair, stored_otherwise, tissue_pair
from rich.console import Console
from rich.table import Table
from torch import Tensor

from regnet.io import read_image, read_labels, read_transform
from regnet.metrics import dice, jacobian_statistics
from regnet.spatial import Affine, Displacement, Transform

PAIRS = ("sample", "tissue", "stored", "mirror", "known")


@dataclass(frozen=True)
class Row:
    """One row; seconds of the whole command, None where nothing was run."""

    pair: str
    method: str
    dice: float
    last_dice: float
    error_mm: float | None = None
    folding_percent: float | None = None
    sdlogj: float | None = None
    seconds: float | None = None
    peak_mb: float | None = None


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the 1 mm brains")
    parser.add_argument("--pairs", nargs="+", choices=PAIRS, default=("tissue", "mirror", "known"), help="which pairs")
    parser.add_argument("--model", type=Path, help="run folder of a network to start from; default: none")
    parser.add_argument("--refine", type=int, default=100, help="refinement steps; default: 100")
    parser.add_argument("--smoothness", nargs="+", default=[], metavar="L", help="a row of ours for each")
    parser.add_argument("--threads", type=int, default=2, help="for regnet and the peers; default: 2")
    parser.add_argument("--peers", action="store_true", help="run greedy and ANTs too")
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    args = parser.parse_args()
    chosen: dict[str, Method] = {}
    for weight in args.smoothness or [None]:
        more = () if weight is None else ("--smoothness", weight)
        chosen |= methods(args.peers, args.refine, args.model, more)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for pair in (make(which, args.data, folder) for which in args.pairs):
            still = Affine.identity(3)
            rows.append(row(pair, "no registration", still))
            for method, run in chosen.items():
                found = run(pair, folder, args.threads)
                rows.append(row(pair, method, found.whole, found))
    Console(width=150).print(as_table(rows, args.threads))
    if args.out is not None:
        machine = {"machine": platform.processor(), "threads": args.threads, "refine": args.refine}
        args.out.write_text(json.dumps({**machine, "rows": [asdict(r) for r in rows]}, indent=2) + "\n")
    return 0


def make(which: str, data: Path, folder: Path) -> Pair:
    """A pair by its name."""
    if which == "sample":
        return sample_pair()
    if which == "stored":
        return stored_otherwise(tissue_pair(data, folder), folder / "stored.nii.gz")
    return {"tissue": tissue_pair, "mirror": mirror_pair, "known": known_pair}[which](data, folder)


def row(pair: Pair, method: str, whole: Transform, found: Found | None = None) -> Row:
    """Measure a map."""
    moving, fixed = read_labels(pair.moving_labels), read_labels(pair.fixed_labels)
    moved = whole.apply_labels(moving.data[None], moving.grid, fixed.grid)
    scores = list(dice(moved[0, 0].long(), fixed.data[0].long(), list(pair.labels)).values())
    # Of two tissues either; of many regions their mean, twice.
    first, last = scores if len(scores) == 2 else [sum(scores) / len(scores)] * 2
    brain = (read_image(pair.fixed).data > 0)[None]
    error = None if pair.truth is None else distance(whole, read_transform(pair.truth), brain)
    if found is None:
        return Row(pair.name, method, first, last, error)
    deformation: Displacement = found.deformation
    (inside,) = jacobian_statistics(deformation.flow[None], brain)
    return Row(
        pair.name, method, first, last, error, 100 * inside["folding"], inside["sdlogj"], found.seconds, found.peak_mb
    )


def distance(found: Transform, truth: Transform, brain: Tensor) -> float:
    """Mean distance in mm of where two maps bring the voxels of the brain."""
    assert isinstance(truth, Displacement)
    voxels = brain[0, 0].nonzero().double()
    points = truth.grid.to_world(voxels)
    return float((found.map_points(points) - truth.map_points(points)).norm(dim=-1).mean())


def as_table(rows: list[Row], threads: int) -> Table:
    """Rows for people."""
    headers = ("pair", "method", "Dice", "(white)", "error mm", "% folded", "SDlogJ", "seconds", "peak MB")
    forms = ("{}", "{}", "{:.3f}", "{:.3f}", "{:.2f}", "{:.4f}", "{:.3f}", "{:.0f}", "{:.0f}")
    table = Table(*headers, title=f"{threads} threads")
    for result in rows:
        cells = asdict(result).values()
        table.add_row(*("" if cell is None else form.format(cell) for form, cell in zip(forms, cells, strict=True)))
    return table


if __name__ == "__main__":
    sys.exit(main())
