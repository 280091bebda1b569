"""``regnet apply`` beside SimpleITK: the same image along the same saved warp, in one process, taking turns.

Usage: ``python benchmarks/apply.py [--size 256] [--threads 1 2] [--repeats 5] [--large] [--json FILE]``

The image is noise smoothed to look like anatomy, the warp smooth and of up to 4 mm, saved by regnet and read by both.
"resampling" is what happens in memory, linear; "from files to a file" also reads the image, the warp and the reference
and writes ``.nii.gz``. The two results must be equal to 1e-3 of the range away from the border. ``--large`` measures
instead the most memory that ``regnet apply`` holds for an image of 720 x 880 x 720 voxels (0.25 mm), int16, along a
warp of 2 mm.
"""

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import SimpleITK as sitk
import torch
from rich.console import Console
from rich.table import Table
from timing import PLAIN_LOOP, Call, seconds
from torch import Tensor

from regnet.cli.main import main as regnet
from regnet.io import image_writer, read_image, read_transform, write_image, write_transform
from regnet.spatial import Displacement, Grid

LARGE = (720, 880, 720)
WORK = ("resampling", "from files to a file")


def smooth(channels: int, shape: tuple[int, ...], knots: int, seed: int) -> Tensor:
    """Noise on a few knots, made as large as ``shape``: ``(channels, *shape)`` from -1 to 1 or so."""
    noise = torch.rand(1, channels, *[knots] * 3, generator=torch.Generator().manual_seed(seed)) * 2 - 1
    return torch.nn.functional.interpolate(noise, size=shape, mode="trilinear", align_corners=True)[0]


def placed(shape: tuple[int, ...], spacing: float) -> Grid:
    """A grid about the world's origin, its first axis to the left."""
    affine = torch.diag(torch.tensor([-spacing, spacing, spacing, 1.0], dtype=torch.float64))
    affine[:3, 3] = -affine[:3, :3] @ torch.tensor([(n - 1) / 2 for n in shape], dtype=torch.float64)
    return Grid(shape, affine)


def contestants(folder: Path, size: int, threads: int) -> dict[tuple[str, int], Call]:
    """What is timed, by name and threads."""
    grid = placed((size,) * 3, 1.0)
    moving, warp = folder / "moving.nii.gz", folder / "warp.nii.gz"
    if not moving.exists():
        write_image(moving, (500 + 400 * smooth(1, grid.shape, 24, 1)).to(torch.int16), grid)
        write_transform(warp, Displacement(4 * smooth(3, grid.shape, 9, 2), grid), grid)
    image, transform = read_image(moving), read_transform(warp)
    theirs = sitk.ReadImage(str(moving), sitk.sitkFloat32)

    def field() -> sitk.DisplacementFieldTransform:
        return sitk.DisplacementFieldTransform(sitk.ReadImage(str(warp), sitk.sitkVectorFloat64))

    held = field()

    def their_resampling() -> sitk.Image:
        sitk.ProcessObject.SetGlobalDefaultNumberOfThreads(threads)
        return sitk.Resample(theirs, theirs, held, sitk.sitkLinear, 0.0)

    def their_files() -> None:
        sitk.ProcessObject.SetGlobalDefaultNumberOfThreads(threads)
        read = sitk.ReadImage(str(moving), sitk.sitkFloat32)
        sitk.WriteImage(sitk.Resample(read, read, field(), sitk.sitkLinear, 0.0), str(folder / "theirs.nii.gz"))

    def our_files() -> None:
        words = ["apply", "--moving", moving, "--reference", moving, "-t", warp, "--out", folder / "ours.nii.gz"]
        with contextlib.redirect_stdout(io.StringIO()):
            assert regnet([*map(str, words), "--overwrite"]) == 0

    return {
        (f"regnet {WORK[0]}", threads): lambda: transform.apply(image.data[None], image.grid),
        (f"SimpleITK {WORK[0]}", threads): their_resampling,
        (f"regnet {WORK[1]}", threads): our_files,
        (f"SimpleITK {WORK[1]}", threads): their_files,
    }


def check_equal(folder: Path) -> float:
    """The largest difference of the two results, of the range, eight voxels and more from the border."""
    ours, theirs = (read_image(folder / f"{name}.nii.gz").data[0, 8:-8, 8:-8, 8:-8] for name in ("ours", "theirs"))
    return float((ours - theirs).abs().max() / (theirs.max() - theirs.min()))


def peak_gib(folder: Path, interp: str) -> float:
    """The most memory that the command held for a large image, GiB."""
    grid, coarse = placed(LARGE, 0.25), placed(tuple(n // 8 for n in LARGE), 2.0)
    moving = folder / "large.nii"
    if not moving.exists():
        with image_writer(moving, grid, np.dtype(np.int16)) as put:
            for start in range(0, LARGE[2], 8):
                put((500 + 400 * smooth(1, (*LARGE[:2], 8), 24, start)).to(torch.int16))
        write_transform(folder / "large_warp.nii.gz", Displacement(smooth(3, coarse.shape, 9, 2), coarse), coarse)
    words = [f"--moving={moving}", f"--reference={moving}", "-t", str(folder / "large_warp.nii.gz"), "--interp", interp]
    command = [sys.executable, "-m", "regnet", "apply", *words, "--out", str(folder / "out.nii"), "--overwrite"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)  # of this child alone
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: status {process.returncode}")
    return used.ru_maxrss / 2**20


def main() -> None:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if args.large:
            for interp in ("linear", "cubic", "label"):
                found[f"peak GiB, {interp}"] = peak_gib(folder, interp)
        else:
            calls = {k: c for threads in args.threads for k, c in contestants(folder, args.size, threads).items()}
            times = seconds(calls, args.repeats)
            for threads in args.threads:
                for work in WORK:
                    ours, theirs = times[f"regnet {work}", threads], times[f"SimpleITK {work}", threads]
                    found |= {
                        f"regnet s, {work}, {threads} threads": ours,
                        f"times as fast, {work}, {threads} threads": theirs / ours,
                    }
                found[f"plain loop s, {threads} threads"] = times[PLAIN_LOOP, threads]
            found["largest difference of the range"] = check_equal(folder)
    table = Table("what", "figure")
    for what, figure in found.items():
        table.add_row(what, f"{figure:.3g}")
    Console().print(table)
    if args.json is not None:
        args.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
