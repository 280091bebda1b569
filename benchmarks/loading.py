"""Loading a pair: prepared anew from .nii.gz, and memory-mapped from the cache, in one process and in one run.

``python benchmarks/loading.py`` prints seconds per pair and their ratio. Files are in the page cache both times.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from regnet.data import Cache, InputSpec, TablePairs, collate, read_table, sample_path
from regnet.io import read_image, read_labels, write_image
from regnet.spatial import resample, resample_labels


def write_study(folder: Path, spacing: float) -> Path:
    """The two brains of the sample at a spacing, with labels, as ``.nii.gz``, and the table of the pair."""
    for name in ("colin27", "mni152"):
        image, labels = read_image(sample_path(f"{name}_t1")), read_labels(sample_path(f"{name}_tissue"))
        grid = image.grid.with_spacing(spacing)
        fine = resample(image.data[None], image.grid, grid)[0]
        write_image(folder / f"{name}.nii.gz", fine + fine.clamp(max=1) * torch.rand(fine.shape), grid)
        write_image(folder / f"{name}_labels.nii.gz", resample_labels(labels.data[None], labels.grid, grid)[0], grid)
    columns = "moving,fixed,moving_labels,fixed_labels\n"
    row = "colin27.nii.gz,mni152.nii.gz,colin27_labels.nii.gz,mni152_labels.nii.gz\n"
    (folder / "pairs.csv").write_text(columns + row)
    return folder / "pairs.csv"


def seconds(load: Callable[[], object], repeats: int) -> float:
    """The least of some times."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        load()
        times.append(time.perf_counter() - began)
    return min(times)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file-spacing", type=float, default=1.0, help="of the files, mm")
    parser.add_argument("--spacing", type=float, default=2.0, help="of the network's grid, mm")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    spec = InputSpec(spacing=args.spacing)
    with tempfile.TemporaryDirectory() as name:
        rows = read_table(write_study(Path(name), args.file_spacing))

        def load(cache: Cache | None) -> dict[str, torch.Tensor]:
            # a dataset of its own each time: nothing is kept in memory; a batch is a copy, so every page is read
            return collate([TablePairs(rows, spec, cache=cache)[0]])

        def read() -> None:
            for path in Path(name).glob("*.nii.gz"):
                read_image(path)

        cache = Cache(Path(name) / "cache")
        load(cache)
        anew = seconds(lambda: load(None), args.repeats)
        alone = seconds(read, args.repeats)
        cached = seconds(lambda: load(cache), 3 * args.repeats)
    print(f"prepared from .nii.gz  {anew:8.3f} s a pair")
    print(f".nii.gz read alone     {alone:8.3f} s a pair")
    print(f"from the cache         {cached:8.3f} s a pair")
    print(f"ratio                  {anew / cached:8.1f} (to reading alone: {alone / cached:.1f})")


if __name__ == "__main__":
    main()
