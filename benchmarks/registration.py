"""Registration of two real brains, whole commands timed, beside greedy in the same run.

Usage: ``python benchmarks/registration.py DATA [--model RUN] [--refine 100] [--threads 2]
       [--sizes 2 1] [--peers] [--out FILE.json]``

DATA holds ``colin27_t1``, ``mni152_t1``, ``mni152_gm`` and ``mni152_wm`` (``.nii.gz``, 1 mm). Tissue classes: Colin27's
T1 from 71 (grey) and from 98 (white); MNI152's maps above 127, white over grey. Labels are warped once, by nearest
neighbour, from the moving image's own grid. The rows "stored otherwise" register a Colin27 that was first stored as
LAS, 2 x 2 x 2.5 mm, on a grid turned by 7 degrees, int16 with slope and intercept. The peer, ``--peers``, is greedy
(``pip install picsl-greedy``) with the settings named in its row.
"""

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import nibabel
import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from regnet.data import sample_path
from regnet.io import read_displacement, read_image, read_labels, read_transform, write_image
from regnet.metrics import dice, jacobian_statistics
from regnet.spatial import Displacement, Grid, Transform, canonical, resample

GREY_FROM, WHITE_FROM, HALF = 71, 98, 127
GREEDY = {
    "greedy 100x50x10 -sv": ("100x50x10", "100x50x10", ("-sv",)),
    "greedy fast": ("100x50x0", "100x50x0", ("-sv",)),
    "greedy sharp": ("100x50x10", "100x100x20", ("-s", "1.0vox", "0.5vox")),
}


@dataclass(frozen=True)
class Pair:
    """Files of one pair, and the label maps that judge it."""

    moving: Path
    fixed: Path
    moving_labels: Path
    fixed_labels: Path


@dataclass(frozen=True)
class Result:
    """One row; seconds of the whole command, None where nothing was run."""

    size: str
    method: str
    grey: float
    white: float
    folding_percent: float | None = None
    sdlogj: float | None = None
    seconds: float | None = None
    peak_mb: float | None = None


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the 1 mm brains")
    parser.add_argument("--model", type=Path, help="run folder of a network to start from; default: none")
    parser.add_argument("--refine", type=int, default=100, help="refinement steps; default: 100")
    parser.add_argument("--threads", type=int, default=2, help="for regnet and the peers; default: 2")
    parser.add_argument("--sizes", nargs="+", choices=("2", "1"), default=("2", "1"), help="mm; default: both")
    parser.add_argument("--peers", action="store_true", help="run greedy too")
    parser.add_argument("--out", type=Path, help="write the rows as JSON")
    args = parser.parse_args()
    results: list[Result] = []
    console = Console()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for size in args.sizes:
            pair = sample_pair() if size == "2" else full_pair(args.data, folder)
            results.append(unregistered(size, pair))
            results.append(run_regnet(size, pair, folder, args))
            stored = stored_otherwise(pair.moving, folder / "stored.nii.gz")
            results.append(run_regnet(size, pair, folder, args, stored))
            if args.peers:
                results += [run_greedy(size, pair, folder, method, args.threads) for method in GREEDY]
    console.print(as_table(results, args.threads))
    if args.out is not None:
        machine = {"machine": platform.processor(), "threads": args.threads, "refine": args.refine}
        args.out.write_text(json.dumps({**machine, "rows": [asdict(r) for r in results]}, indent=2) + "\n")
    return 0


def sample_pair() -> Pair:
    """The 2 mm pair that ships with regnet."""
    names = ("colin27_t1", "mni152_t1", "colin27_tissue", "mni152_tissue")
    return Pair(*(sample_path(name) for name in names))


def full_pair(data: Path, folder: Path) -> Pair:
    """The 1 mm pair, its tissue classes made."""
    t1, grey, white = (read_image(data / f"{name}.nii.gz") for name in ("colin27_t1", "mni152_gm", "mni152_wm"))
    pair = Pair(
        data / "colin27_t1.nii.gz", data / "mni152_t1.nii.gz", folder / "moving.nii.gz", folder / "fixed.nii.gz"
    )
    classes = (t1.data >= GREY_FROM).to(torch.uint8) + (t1.data >= WHITE_FROM).to(torch.uint8)
    write_image(pair.moving_labels, classes, t1)
    maps = torch.where(white.data > HALF, 2, (grey.data > HALF).to(torch.uint8)).to(torch.uint8)
    write_image(pair.fixed_labels, maps, grey)
    return pair


def stored_otherwise(path: Path, out: Path) -> Path:
    """Store a volume as LAS, 2 x 2 x 2.5 mm, on a turned grid, int16 with slope and intercept."""
    image = read_image(path)
    straight = canonical(image.grid, (2.0, 2.0, 2.5))
    c, s = math.cos(math.radians(7)), math.sin(math.radians(7))
    turn = torch.tensor([[-c, -s, 0, 0], [-s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=torch.float64)
    middle = torch.tensor([(n - 1) / 2 for n in straight.shape], dtype=torch.float64)
    affine = turn @ straight.affine
    affine[:3, 3] = straight.to_world(middle) - affine[:3, :3] @ middle
    grid = Grid(straight.shape, affine)
    file = nibabel.Nifti1Image(resample(image.data[None], image.grid, grid)[0, 0].numpy(), affine.numpy())
    file.set_data_dtype(np.int16)
    file.set_sform(affine.numpy(), 1)
    file.set_qform(affine.numpy(), 1)
    nibabel.save(file, out)
    return out


def unregistered(size: str, pair: Pair) -> Result:
    """The images as they lie in the world."""
    fixed = read_labels(pair.fixed_labels)
    return Result(size, "no registration", *overlap(pair, Displacement.identity(fixed.grid)))


def run_regnet(size: str, pair: Pair, folder: Path, args: argparse.Namespace, stored: Path | None = None) -> Result:
    """``regnet register``, the whole command in its own process."""
    warp = folder / "warp.nii.gz"
    words = [sys.executable, "-m", "regnet", "register", "--moving", str(stored or pair.moving)]
    words += ["--fixed", str(pair.fixed), "--model", str(args.model or "none"), "--refine", str(args.refine)]
    words += ["--moved", str(folder / "moved.nii.gz"), "--warp", str(warp), "--overwrite"]
    seconds, peak = timed([*words, "--threads", str(args.threads)], args.threads)
    method = f"regnet {'network + ' if args.model else ''}refine {args.refine}{', stored otherwise' if stored else ''}"
    return Result(size, method, *overlap(pair, read_transform(warp)), *regularity(pair, warp), seconds, peak)


def run_greedy(size: str, pair: Pair, folder: Path, method: str, threads: int) -> Result:
    """greedy: affine, deformable, and the labels warped by it, each a process of its own; all but the labels timed."""
    affine_steps, steps, more = GREEDY[method]
    common = ("-d", "3", "-threads", str(threads), "-i", str(pair.fixed), str(pair.moving), "-m", "NCC", "2x2x2")
    affine, warp, labels = folder / "affine.mat", folder / "greedy_warp.nii.gz", folder / "greedy_labels.nii.gz"
    first, peak_first = timed(greedy(*common, "-a", "-ia-identity", "-n", affine_steps, "-o", affine), threads)
    second, peak_second = timed(greedy(*common, "-it", affine, "-n", steps, *more, "-o", warp), threads)
    reslice = ("-rf", pair.fixed, "-ri", "LABEL", "0.2vox", "-rm", pair.moving_labels, labels, "-r", warp, affine)
    timed(greedy("-d", "3", "-threads", threads, *reslice), threads)
    found, truth = read_labels(labels), read_labels(pair.fixed_labels)
    scores = dice(found.data[0].long(), truth.data[0].long(), [1, 2])
    seconds, peak = first + second, max(peak_first, peak_second)
    return Result(size, method, scores[1], scores[2], *regularity(pair, warp), seconds, peak)


def greedy(*words: object) -> list[str]:
    """The command line of greedy; its Python package has no script of its own."""
    code = "import sys; from picsl_greedy import Greedy3D; Greedy3D().execute(' '.join(sys.argv[1:]))"
    return [sys.executable, "-c", code, *map(str, words)]


def timed(words: list[str], threads: int) -> tuple[float, float]:
    """Run a command and return its seconds and its peak memory in MB.

    Raises:
        SystemExit: it failed.
    """
    began = time.perf_counter()
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} failed with status {process.returncode}")
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def overlap(pair: Pair, transform: Transform) -> tuple[float, float]:
    """Dice of grey and white matter."""
    moving, fixed = read_labels(pair.moving_labels), read_labels(pair.fixed_labels)
    moved = transform.apply_labels(moving.data[None], moving.grid, fixed.grid)
    scores = dice(moved[0, 0].long(), fixed.data[0].long(), [1, 2])
    return scores[1], scores[2]


def regularity(pair: Pair, warp: Path) -> tuple[float, float]:
    """Folded voxels in % and SDlogJ, in the brain of the (brain-extracted) fixed image."""
    brain = (read_image(pair.fixed).data > 0)[None]
    flow, _ = read_displacement(warp)
    (inside,) = jacobian_statistics(flow[None], brain)
    return 100 * inside["folding"], inside["sdlogj"]


def as_table(results: list[Result], threads: int) -> Table:
    """Rows for people."""
    headers = ("mm", "method", "grey", "white", "% folded", "SDlogJ", "seconds", "peak MB")
    forms = ("{}", "{}", "{:.3f}", "{:.3f}", "{:.4f}", "{:.3f}", "{:.0f}", "{:.0f}")
    table = Table(*headers, title=f"Colin27 to MNI152, {threads} threads")
    for result in results:
        cells = asdict(result).values()
        table.add_row(*("" if cell is None else form.format(cell) for form, cell in zip(forms, cells, strict=True)))
    return table


if __name__ == "__main__":
    sys.exit(main())
