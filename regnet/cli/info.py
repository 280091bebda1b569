"""``regnet info``: what is installed, and which compiled core runs."""

import argparse
import platform
import warnings
from importlib import metadata
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from regnet import __version__
from regnet.config import config_dir
from regnet.data.sample import sample_names
from regnet.ops._core import backend, gpu, has_gpu_module, isa

_PACKAGES = ("lightning", "hydra-core", "nibabel", "numpy", "scipy", "matplotlib", "tensorboard", "wandb")


def add_parser(subparsers: Any) -> None:
    """Declare the verb; it has no options."""
    subparsers.add_parser("info", help="say what is installed and which compiled core runs", description=__doc__)


def run(args: argparse.Namespace) -> int:
    """Print the table."""
    table = Table(title="regnet", show_header=False)
    table.add_row("regnet", __version__)
    table.add_row("compiled core", _core())
    table.add_row("operators", _backends())
    table.add_row("CUDA kernels", _cuda())
    table.add_row("GPU", _gpus())
    table.add_row("python", platform.python_version())
    table.add_row("torch", f"{torch.__version__}, {torch.get_num_threads()} threads")
    table.add_row("machine", f"{platform.system()} {platform.machine()}")
    table.add_row("configuration", str(config_dir()))
    table.add_row("sample images", ", ".join(sample_names()))
    for name in _PACKAGES:
        table.add_row(name, _version(name))
    Console().print(table)
    return 0


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _core() -> str:
    try:
        return isa()
    except RuntimeError as error:
        return f"none: {error}"


def _backends() -> str:
    """What serves the processor, and the GPU if torch sees one."""
    seen = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they would say stands in the table
            return ", ".join(f"{device}: {backend(device)}" for device, here in seen.items() if here)
    except RuntimeError as error:
        return f"none: {error}"


def _cuda() -> str:
    try:
        kernels = gpu()
    except RuntimeError as error:
        return f"none: {error}"
    how = "compiled by nvcc" if has_gpu_module() else "compiled at run time by NVRTC"
    return f"{how} of CUDA {kernels.toolkit}, for the architectures {kernels.architectures}"


def _gpus() -> str:
    if not torch.cuda.is_available():
        return "none seen"
    names = [torch.cuda.get_device_properties(k) for k in range(torch.cuda.device_count())]
    return ", ".join(f"{p.name} (sm_{p.major}{p.minor})" for p in names)
