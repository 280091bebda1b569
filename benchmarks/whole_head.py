"""What ``regnet register`` costs for two whole heads of 1 mm: seconds, and memory beyond the images.

Usage: ``python benchmarks/whole_head.py [DATA] [--threads 2] [--size 256] [--repeats 3] [--json FILE]``

DATA holds ``colin27_t1.nii.gz`` and ``mni152_t1.nii.gz`` of 1 mm, which are padded to a cube; without it the sample
brains are resampled to 1 mm first. The network is the default one (``configs/model/unet_velocity.yaml``) with random
weights. The command is ``register --init affine --prefix``, in a process of its own, from files to files. Aim: below
30 s and 4 GiB beyond the two images (as float32) with two threads on two quiet cores.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, cast

import torch
from omegaconf import OmegaConf

from regnet.config import config_dir
from regnet.data import InputSpec, sample_path
from regnet.io import read_image, write_image
from regnet.models import build
from regnet.spatial import Grid, resample


def write_padded(source: Path, out: Path, size: int) -> None:
    """A head of 1 mm in the middle of a cube."""
    image = read_image(source)
    grid = image.grid.with_spacing(1.0)
    first = [(n - size) // 2 for n in grid.shape]
    cube = Grid((size,) * 3, grid.window(first, [size] * 3).affine)
    write_image(out, resample(image.data[None], image.grid, cube)[0].round().to(torch.int16), cube)


def write_network(out: Path) -> None:
    """The default network, its weights random, as a training run leaves it."""
    whole = OmegaConf.create({"data": {"spec": {"ndim": 3}}})
    whole.model = OmegaConf.load(config_dir() / "model" / "unet_velocity.yaml")
    model = cast(dict[str, Any], OmegaConf.to_container(whole, resolve=True))["model"]
    torch.manual_seed(0)
    weights = {f"model.{name}": value for name, value in build(model).state_dict().items()}
    about = {"model": model, "spec": InputSpec(ndim=3).to_dict(), "regnet": "0.1.0"}
    torch.save({"state_dict": weights, "hyper_parameters": about}, out)


def measure(words: list[str], threads: int) -> tuple[float, float, float]:
    """Seconds, seconds of processor, and the most memory in GiB, of a command."""
    began = time.perf_counter()
    process = subprocess.Popen(words, env={**os.environ, "OMP_NUM_THREADS": str(threads)}, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"failed: {' '.join(words)}")
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20


def main() -> None:
    """Print a line and, if asked, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side, brain in (("moving", "colin27_t1"), ("fixed", "mni152_t1")):
            source = args.data / f"{brain}.nii.gz" if args.data else sample_path(brain)
            write_padded(source, folder / f"{side}.nii.gz", args.size)
        write_network(folder / "any.ckpt")
        words = [sys.executable, "-m", "regnet", "register", "--init", "affine", "--model", str(folder / "any.ckpt")]
        words += ["--moving", str(folder / "moving.nii.gz"), "--fixed", str(folder / "fixed.nii.gz")]
        words += ["--threads", str(args.threads), "--prefix", str(folder / "out_"), "--overwrite"]
        runs = [measure(words, args.threads) for _ in range(args.repeats)]
    images = 2 * 4 * args.size**3 / 2**30
    wall, processor, most = (statistics.median(each) for each in zip(*runs, strict=True))
    print(
        f"{args.size}^3, {args.threads} threads: {wall:.1f} s ({processor:.1f} s of processor), "
        f"{most:.2f} GiB, {most - images:.2f} beyond the images; median of {args.repeats}"
    )
    if args.json:
        args.json.write_text(json.dumps({"threads": args.threads, "size": args.size, "runs": runs}))


if __name__ == "__main__":
    main()
