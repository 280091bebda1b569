"""What measuring a pair costs, by stage: a 1 mm head of 160×192×224 voxels with 108 labels, made on the spot.

Usage: ``python benchmarks/evaluate.py [--shape 160 192 224] [--threads 1 2] [--repeats 3] [--cohort 0]``

"reading" is the two images, the two label maps and the map from their files, ".nii.gz"; "evaluate" is all that
``regnet evaluate`` does for the pair, reading included. ``--cohort N`` measures N such pairs instead, two at a time,
each with one thread, and gives the seconds a pair: of reading alone, and of all.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from scipy.spatial import KDTree
from timing import Call, seconds
from torch import Tensor

from regnet import metrics
from regnet.data.table import Pair
from regnet.inference.case import Case, Protocol
from regnet.inference.cohort import evaluate_cases
from regnet.inference.evaluate import evaluate
from regnet.io import read_image, read_labels, read_transform, write_image, write_transform
from regnet.losses import lncc
from regnet.spatial import Displacement, Grid

LABELS = 108


def main() -> None:
    """Time every stage and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", type=int, nargs=3, default=(160, 192, 224))
    parser.add_argument("--threads", type=int, nargs="+", default=(1, 2))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cohort", type=int, default=0, metavar="N")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        stages = make(Path(folder), args.shape)
        if args.cohort:
            cohort(Path(folder), stages["reading"], args.cohort)
            return
        times = seconds({(name, n): call for n in args.threads for name, call in stages.items()}, args.repeats)
    table = Table("stage", *(f"seconds, threads: {n}" for n in args.threads))
    for name in stages:
        table.add_row(name, *(f"{times[name, n]:.2f}" for n in args.threads))
    Console().print(table)


def cohort(folder: Path, read: Call, count: int) -> None:
    """Measure many pairs, two at a time, and print what one of them takes."""
    pair = Pair("pair", (folder / "moving.nii.gz",), (folder / "fixed.nii.gz",), *parts(folder))
    cases = [Case(replace(pair, id=f"pair{k}"), (folder / "warp.nii.gz",)) for k in range(count)]
    torch.set_num_threads(2)  # shared out among the two
    began = time.perf_counter()
    evaluate_cases(cases, Protocol(), jobs=2)
    whole = (time.perf_counter() - began) / count
    torch.set_num_threads(1)
    began = time.perf_counter()
    read()
    reading = time.perf_counter() - began
    print(f"{count} pairs, 2 at a time: {whole:.2f} s a pair; reading one, one thread: {reading:.2f} s")


def make(folder: Path, shape: Sequence[int]) -> dict[str, Call]:
    """Write a pair and its map; what each stage does, by name."""
    grid = Grid(tuple(shape), torch.eye(4))
    labels = regions(grid.shape)
    image = (labels > 0) * (1 + torch.rand(grid.shape, generator=torch.Generator().manual_seed(1)))
    truth, found = (Displacement(bumps(grid.shape, size), grid) for size in (2.0, 2.2))
    target = truth.apply_labels(labels[None, None], grid)[0, 0]
    pair = Pair("pair", (folder / "moving.nii.gz",), (folder / "fixed.nii.gz",), *parts(folder))
    write_image(pair.moving[0], image, grid)
    write_image(pair.fixed[0], truth.apply(image[None, None], grid)[0], grid)
    for path, data in ((pair.moving_labels, labels), (pair.fixed_labels, target)):
        write_image(str(path), data, grid)
    warp = folder / "warp.nii.gz"
    write_transform(warp, found)

    flow, mask = found.flow[None], (target > 0)[None, None]
    moved, both = found.apply(image[None, None], grid), metrics.common_labels(labels, target)
    fixed = truth.apply(image[None, None], grid)
    warped = found.apply_labels(labels[None, None], grid)[0, 0]

    def read() -> None:
        for images, maps in ((pair.moving, pair.moving_labels), (pair.fixed, pair.fixed_labels)):
            read_image(images[0]), read_labels(str(maps))
        read_transform(warp)

    return {
        "reading": read,
        "labels warped, nearest": lambda: found.apply_labels(labels[None, None], grid),
        "labels warped, linear": lambda: found.apply_labels(labels[None, None], grid, mode="linear"),
        "Dice": lambda: metrics.dice(warped, target, both),
        "HD95 and mean surface distance": lambda: metrics.surface_distances(warped, target, 1.0, both),
        "image warped": lambda: found.apply(image[None, None], grid),
        "LNCC": lambda: lncc(moved, fixed),
        "NMI": lambda: metrics.normalised_mutual_information(moved, fixed, mask),
        "folding, SDlogJ, percentiles": lambda: metrics.jacobian_statistics(flow, mask, None),
        "non-diffeomorphic volume": lambda: metrics.non_diffeomorphic_volume(flow, mask),
        "evaluate": lambda: evaluate(Case(pair, (warp,))),
    }


def parts(folder: Path) -> tuple[Path, Path]:
    """Where the label maps are."""
    return folder / "moving_labels.nii.gz", folder / "fixed_labels.nii.gz"


def regions(shape: tuple[int, ...]) -> Tensor:
    """An ellipsoid, a third of the grid, cut into the neighbourhoods of random points."""
    axes = [torch.linspace(-1, 1, n) for n in shape]
    places = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1)
    inside = places.norm(dim=-1) < 0.85
    seeds = 1.2 * torch.rand(LABELS, 3, generator=torch.Generator().manual_seed(0)) - 0.6
    labels = torch.zeros(shape, dtype=torch.int16)
    labels[inside] = torch.from_numpy(KDTree(seeds).query(places[inside])[1]).short() + 1
    return labels


def bumps(shape: tuple[int, ...], size: float) -> Tensor:
    """A smooth random field, ``(3, *shape)``."""
    coarse = size * torch.randn(1, 3, 8, 9, 10, generator=torch.Generator().manual_seed(2))
    return torch.nn.functional.interpolate(coarse, size=shape, mode="trilinear", align_corners=True)[0]


if __name__ == "__main__":
    main()
