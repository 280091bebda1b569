"""What ``regnet doctor`` looks at: each check gives findings, and raises nothing."""

import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import torch

import regnet
from regnet import ops
from regnet.config import config_dir
from regnet.data.sample import sample_names
from regnet.ops._core import backend, isa

_EXTRAS = {
    "SimpleITK": ("itk", ".nrrd and .mha images, elastix's composites"),
    "wandb": ("wandb", "logger=wandb"),
    "cornucopia": ("augment", "data=augmented"),
    "optuna": ("sweep", "hparams_search=optuna"),
    "onnxruntime": ("onnx", "export --to onnx"),
    "ray": ("ray", "register --engine ray"),
}
_LITTLE = 2**30  # bytes


@dataclass(frozen=True)
class Finding:
    """One line of the table: a ``"fault"`` keeps regnet from working, a ``"note"`` is worth knowing."""

    kind: Literal["good", "note", "fault"]
    what: str
    found: str
    cure: str = ""


def core() -> Iterator[Finding]:
    """The compiled operators: there, chosen rightly, and right."""
    try:
        name = isa()
    except (RuntimeError, ImportError) as error:
        yield Finding("fault", "compiled operators", str(error), "pip install . again; it needs a C++17 compiler")
        return
    yield Finding("good", "compiled operators", name)
    if backend("cpu") == "torch":
        yield Finding("note", "operators", "plain torch, 25 to 40 times slower", "unset REGNET_BACKEND")
    yield _sum_of_parts()


def _sum_of_parts() -> Finding:
    """A shift by one voxel, forward and backward, on all threads: the answer is known to the bit."""
    image = torch.arange(64.0 * 40 * 40).view(1, 1, 64, 40, 40).requires_grad_()
    flow = torch.zeros(1, 3, 64, 40, 40)
    flow[:, 0] = 1
    moved = ops.warp(image, flow, bound="dft")
    (gradient,) = torch.autograd.grad(moved.sum(), image)
    right = torch.equal(moved, image.roll(-1, 2)) and torch.equal(gradient, torch.ones_like(image))
    if right:
        return Finding("good", "a shifted volume", "right, and its gradient")
    cure = "REGNET_ISA=base; and please report it with `regnet info`"
    return Finding("fault", "a shifted volume", "wrong values", cure)


def threads() -> Iterator[Finding]:
    """As many threads as processors that this process may use."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    used, setting = torch.get_num_threads(), os.environ.get("OMP_NUM_THREADS")
    found = f"{used} of torch, {count} processors"
    if used < count and setting:
        yield Finding("note", "threads", f"{found}, OMP_NUM_THREADS={setting}", "unset OMP_NUM_THREADS, or --threads N")
    elif used > count:
        yield Finding("note", "threads", f"{found}: they wait for each other", f"export OMP_NUM_THREADS={count}")
    else:
        yield Finding("good", "threads", found)


def graphics() -> Iterator[Finding]:
    """A GPU that the machine has is one that torch sees, and that has kernels."""
    if torch.cuda.is_available():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is said here
            serves = backend("cuda")
        if serves == "torch":
            cure = "a torch wheel with CUDA brings NVRTC; see `regnet info`"
            yield Finding("note", "GPU", "operators in plain torch", cure)
        else:
            yield Finding("good", "GPU", torch.cuda.get_device_name())
    elif not shutil.which("nvidia-smi"):
        yield Finding("good", "GPU", "none")
    elif torch.version.cuda is None:
        found = f"a driver, but torch {torch.__version__} is for processors"
        yield Finding("note", "GPU", found, "install a torch with CUDA")
    else:
        cure = "a newer driver, or a torch for an older CUDA; CUDA_VISIBLE_DEVICES may hide it"
        yield Finding("note", "GPU", f"a driver, but torch (CUDA {torch.version.cuda}) sees no GPU", cure)


def packages() -> Iterator[Finding]:
    """One regnet, the one that was installed; and what the extras would bring."""
    here = Path(regnet.__file__).parent
    try:
        installed = metadata.version("regnet")
    except metadata.PackageNotFoundError:
        yield Finding("note", "regnet", f"runs from {here}, not installed", "pip install .")
    else:
        found = f"{regnet.__version__} from {here}"
        if installed == regnet.__version__:
            yield Finding("good", "regnet", found)
        else:
            cure = "another copy comes first: look at PYTHONPATH and the folder you are in"
            yield Finding("note", "regnet", f"{found}, {installed} installed", cure)
    for name, (extra, use) in _EXTRAS.items():
        if find_spec(name) is None:
            yield Finding("note", name, f"missing: no {use}", f"pip install 'regnet[{extra}]'")
        else:
            yield Finding("good", name, metadata.version(name))


def files() -> Iterator[Finding]:
    """What regnet reads of its own, and where it writes."""
    try:
        found = f"{len(sample_names())} sample images, configuration in {config_dir()}"
        yield Finding("good", "files of the package", found)
    except OSError as error:
        yield Finding("fault", "files of the package", str(error), "pip install . again")
    for what, place in (("temporary folder", Path(tempfile.gettempdir())), ("this folder", Path.cwd())):
        free = shutil.disk_usage(place).free
        if not os.access(place, os.W_OK):
            yield Finding("note", what, f"{place} is read-only", "set TMPDIR, or go elsewhere")
        elif free < _LITTLE:
            cure = "make room: a warp of 1 mm takes 100 MB"
            yield Finding("note", what, f"{place}: {free / 2**20:.0f} MiB free", cure)
        else:
            yield Finding("good", what, f"{place}: {free / 2**30:.0f} GiB free")


def shared_memory() -> Iterator[Finding]:
    """Data loaders hand over volumes through /dev/shm, which containers keep small."""
    place = Path("/dev/shm")
    if place.is_dir():
        free = shutil.disk_usage(place).free
        found = f"{free / 2**20:.0f} MiB"
        if free >= _LITTLE:
            yield Finding("good", "shared memory", found)
        else:
            cure = "docker run --shm-size=8g, or data.num_workers=0"
            yield Finding("note", "shared memory", found, cure)


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (packages, core, threads, graphics, files, shared_memory)
