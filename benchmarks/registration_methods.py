"""Registration programs, each a process of its own: the map that it found, its seconds and its peak memory."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from registration_pairs import Pair

from regnet.io import read_transform
from regnet.spatial import Displacement, Transform, chain

NCC = ("-m", "NCC", "2x2x2")
# Affine steps, deformable steps, further options.
GREEDY = {
    "greedy fast": ("100x50x0", "100x50x0", ("-sv",)),
    "greedy default": ("100x50x10", "100x50x10", ("-sv",)),
    "greedy sharp": ("100x50x10", "100x100x20", ("-s", "1.0vox", "0.5vox")),
    "greedy over-fitted": ("100x50x10", "200x200x60", ("-s", "0.7vox", "0.3vox")),
}
ANTS = {"antspyx SyN": "SyN", "antsRegistrationSyNQuick[s]": "antsRegistrationSyNQuick[s]"}


@dataclass(frozen=True)
class Found:
    """The whole map, the deformation alone, and what they cost."""

    whole: Transform
    deformation: Displacement
    seconds: float
    peak_mb: float


Method = Callable[[Pair, Path, int], Found]


def regnet(refine: int, model: Path | None, more: Sequence[str], pair: Pair, folder: Path, threads: int) -> Found:
    """``regnet register``, the whole command."""
    prefix = folder / "regnet_"
    words = [sys.executable, "-m", "regnet", "register", "--moving", str(pair.moving), "--fixed", str(pair.fixed)]
    words += ["--model", str(model or "none"), "--refine", str(refine), "--prefix", str(prefix), "--overwrite", *more]
    seconds, peak = timed([*words, "--threads", str(threads)], threads)
    return _found([f"{prefix}1Warp.nii.gz", f"{prefix}0GenericAffine.mat"], None, seconds, peak)


def greedy(preset: tuple[str, str, Sequence[str]], pair: Pair, folder: Path, threads: int) -> Found:
    """greedy (PyPI: picsl-greedy), affine, then deformable."""
    affine_steps, steps, more = preset
    affine, warp = folder / "greedy_affine.mat", folder / "greedy_warp.nii.gz"
    common = ("-d", "3", "-threads", threads, "-i", pair.fixed, pair.moving, *NCC)
    # Its Python package has no script of its own.
    code = "import sys; from picsl_greedy import Greedy3D; Greedy3D().execute(' '.join(sys.argv[1:]))"
    stages = (
        (*common, "-a", "-ia-identity", "-n", affine_steps, "-o", affine),
        (*common, "-it", affine, "-n", steps, *more, "-o", warp),
    )
    costs = [timed([sys.executable, "-c", code, *map(str, stage)], threads) for stage in stages]
    return _found([warp, affine], "ras", sum(s for s, _ in costs), max(p for _, p in costs))


def ants(preset: str, pair: Pair, folder: Path, threads: int) -> Found:
    """ANTs (PyPI: antspyx)."""
    code = (
        "import sys, ants; fixed, moving = map(ants.image_read, sys.argv[1:3]); "
        "ants.registration(fixed, moving, sys.argv[3], outprefix=sys.argv[4])"
    )
    prefix = folder / "ants_"
    words = [sys.executable, "-c", code, str(pair.fixed), str(pair.moving), preset, str(prefix)]
    seconds, peak = timed(words, threads)
    return _found([f"{prefix}1Warp.nii.gz", f"{prefix}0GenericAffine.mat"], None, seconds, peak)


def methods(peers: bool, refine: int, model: Path | None, more: Sequence[str] = ()) -> dict[str, Method]:
    """What is run, by the name in its row."""
    name = f"regnet {'network + ' if model else ''}refine {refine} {' '.join(more)}".strip()
    chosen: dict[str, Method] = {name: partial(regnet, refine, model, more)}
    if peers:
        chosen |= {name: partial(greedy, preset) for name, preset in GREEDY.items()}
        chosen |= {name: partial(ants, preset) for name, preset in ANTS.items()}
    return chosen


def timed(words: list[str], threads: int) -> tuple[float, float]:
    """Run a command and return its seconds and its peak memory in MB.

    Raises:
        SystemExit: it failed.
    """
    began = time.perf_counter()
    limits = {"OMP_NUM_THREADS": str(threads), "ITK_GLOBAL_DEFAULT_NUMBER_OF_THREADS": str(threads)}
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, env={**os.environ, **limits})
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} failed with status {process.returncode}")
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def _found(files: Sequence[str | Path], matrix: str | None, seconds: float, peak: float) -> Found:
    """Of a field and a matrix: the field acts first."""
    warp, affine = Path(files[0]), Path(files[1])
    field = read_transform(warp)
    assert isinstance(field, Displacement)
    return Found(chain([field, read_transform(affine, matrix)]), field, seconds, peak)
