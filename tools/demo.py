"""What ``make demo`` runs: train a network, register two real brains, and say how good it is.

Usage: ``python tools/demo.py [--out demo] [--smoke]``

Everything it does can be typed: each step prints its command.
"""

import argparse
import contextlib
import io
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table

from regnet.cli.main import main as regnet
from regnet.data import SyntheticData, SyntheticPairs, sample_path
from regnet.inference import LoadedModel, load_model, register
from regnet.io import write_image, write_transform
from regnet.spatial import Displacement, Grid

MOVING, FIXED = "colin27", "mni152"
PAIR = f"{MOVING}_to_{FIXED}"
UNSEEN_SEED = 1000  # the training draws with seed 0
COLUMNS = {
    "dice_1": ("Dice grey", "{:.3f}"),
    "dice_2": ("Dice white", "{:.3f}"),
    "dice": ("Dice", "{:.3f}"),
    "lncc": ("LNCC", "{:.3f}"),
    "hd95_mm": ("HD95 mm", "{:.2f}"),
    "displacement_mean_mm": ("mean mm", "{:.2f}"),
    "displacement_max_mm": ("most mm", "{:.2f}"),
    "folding_percent": ("% folded", "{:.4f}"),
    "sdlogj": ("SDlogJ", "{:.3f}"),
    "epe_mean_mm": ("error mm", "{:.2f}"),
}
REAL = ("dice_1", "dice_2", "hd95_mm", "displacement_mean_mm", "displacement_max_mm", "folding_percent", "sdlogj")
UNSEEN = ("dice", "lncc", "displacement_mean_mm", "displacement_max_mm", "folding_percent", "sdlogj", "epe_mean_mm")

console = Console()


def main() -> int:
    """Run all steps; exit status 0, or that of the step that failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder to write to; default: demo")
    parser.add_argument("--smoke", action="store_true", help="seconds instead of minutes: does it run, not how good")
    args = parser.parse_args()
    began = time.perf_counter()
    out = args.out
    refine, unseen = (4, 2) if args.smoke else (100, 8)
    out.mkdir(parents=True, exist_ok=True)

    console.rule("1. Train a network on synthetic pairs of the two sample brains")
    run = out / "run"
    shutil.rmtree(run, ignore_errors=True)
    experiment = ["experiment=smoke"] if args.smoke else []
    train(run, experiment)
    model = load_model(run)

    console.rule(f"2. Register {unseen} unseen synthetic pairs, whose true deformation is known")
    table = write_unseen(model, out / "unseen", unseen)
    before = evaluate(table, "none", out / "unseen" / "before")
    after = evaluate(table, out / "unseen", out / "unseen" / "network")
    show("Unseen synthetic pairs, mean of all", {"no registration": before, "network": after}, UNSEEN)

    console.rule("3. Register Colin27 to MNI152: the network alone, then refined on this pair")
    table = write_real(out / "real.csv")
    rows = {"no registration": evaluate(table, "none", out / "before")}
    for name, folder, steps in (
        ("network", out / "network", 0),
        ("network + refine", out / "network_refinement", refine),
    ):
        seconds = register_real(run, folder, steps)
        rows[f"{name} ({seconds:.0f} s)"] = evaluate(table, folder, folder)
    show(f"{PAIR}, in-sample: the training data came from these two brains", rows, REAL)

    console.rule(f"Done in {(time.perf_counter() - began) / 60:.1f} minutes")
    show_files(out)
    return 0


def command(*words: Any, quiet: bool = False) -> None:
    """Print and run a ``regnet`` command in this process.

    Raises:
        SystemExit: it failed.
    """
    texts = [str(word) for word in words]
    console.print(f"$ regnet {' '.join(texts)}", style="bold", highlight=False, soft_wrap=True)
    with contextlib.redirect_stdout(io.StringIO()) if quiet else contextlib.nullcontext():
        status = regnet(texts)
    if status:
        raise SystemExit(status)


def train(run: Path, overrides: list[str]) -> None:
    """Train in a process of its own, so that Hydra's and Lightning's settings stay there."""
    words = ["train", *overrides, f"hydra.run.dir={run}"]
    console.print(f"$ regnet {' '.join(words)}", style="bold", highlight=False, soft_wrap=True)
    status = subprocess.run([sys.executable, "-m", "regnet", *words], check=False).returncode
    if status:
        raise SystemExit(status)


def evaluate(table: Path, transforms: Path | str, out: Path) -> dict[str, float]:
    """Evaluate a table of pairs and return the means of its columns."""
    # Quiet, since the demo shows the same figures side by side.
    command("evaluate", "--pairs", table, "--transforms", transforms, "--out", out, "--overwrite", quiet=True)
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))["aggregates"]
    return {name: figures["mean"] for name, figures in summary.items() if figures["n"]}


def write_unseen(model: LoadedModel, folder: Path, count: int) -> Path:
    """Write synthetic pairs, their true warps and the network's warps; return their table."""
    data = SyntheticData(model.spec, validation_pairs=count, seed=UNSEEN_SEED)
    pairs: SyntheticPairs = data.dataset(training=False)
    files = ("moving", "fixed", "moving_labels", "fixed_labels", "true_warp")
    lines = [",".join(("id", *files))]
    for index in track(range(count), "registering", console=console, transient=True):
        pair = pairs[index]
        affine = torch.diag(torch.tensor([*pair["spacing"].tolist(), 1.0], dtype=torch.float64))
        grid = Grid(tuple(pair["fixed"].shape[1:]), affine)
        names = {name: f"{pair['id']}_{name}.nii.gz" for name in files}
        for name in files[:-1]:
            write_image(folder / names[name], pair[name], grid)
        write_transform(folder / names["true_warp"], Displacement(pair["flow"], grid), grid)
        found = register(folder / names["moving"], folder / names["fixed"], model)
        write_transform(folder / f"{pair['id']}_warp.nii.gz", found, grid)
        lines.append(",".join((pair["id"], *names.values())))
    table = folder / "pairs.csv"
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return table


def write_real(table: Path) -> Path:
    """Write the table of the one real pair."""
    files = [sample_path(name) for name in ("colin27_t1", "mni152_t1", "colin27_tissue", "mni152_tissue")]
    cells = ",".join(str(file.resolve()) for file in files)
    table.write_text(f"id,moving,fixed,moving_labels,fixed_labels\n{PAIR},{cells}\n", encoding="utf-8")
    return table


def register_real(run: Path, folder: Path, refine: int) -> float:
    """Register the real pair and return the seconds it took."""
    began = time.perf_counter()
    command(
        *("register", "--moving", sample_path("colin27_t1"), "--fixed", sample_path("mni152_t1"), "--model", run),
        *(("--refine", refine) if refine else ()),
        *("--moved", folder / "moved.nii.gz", "--warp", folder / f"{PAIR}_warp.nii.gz"),
        *("--figure", folder / "figure.png", "--overwrite"),
    )
    return time.perf_counter() - began


def show(title: str, rows: dict[str, dict[str, float]], columns: tuple[str, ...]) -> None:
    """Print a small table."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    for column in columns:
        table.add_column(COLUMNS[column][0], justify="right", min_width=6)
    for name, values in rows.items():
        cells = (COLUMNS[column][1].format(values[column]) if column in values else "-" for column in columns)
        table.add_row(name, *cells)
    console.print(table)


def show_files(out: Path) -> None:
    """Say where everything is."""
    for what, path in (
        ("checkpoints, logs, configuration", out / "run"),
        ("unseen pairs, warps, measures", out / "unseen"),
        ("the real pair by the network", out / "network"),
        ("the real pair refined", out / "network_refinement"),
        ("fixed, moving, moved, warped grid", out / "network_refinement" / "figure.png"),
    ):
        console.print(f"{what:34}{path}", soft_wrap=True, highlight=False)


if __name__ == "__main__":
    sys.exit(main())
