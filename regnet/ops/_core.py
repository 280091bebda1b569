"""Where a tensor becomes a pointer: the only importer of the compiled modules."""

import functools
import importlib.util
import os
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch  # before the compiled modules, so that the process has one OpenMP runtime
from torch import Tensor

from regnet.ops._kernels import Planned

_MODULES = {
    "base": "regnet.ops._cpu_base",
    "v3": "regnet.ops._cpu_v3",
    "cuda": "regnet.ops._cuda",
    "plan": "regnet.ops._plan",
}
_ISAS = ("base", "v3")
_BACKENDS = ("native", "torch")
# The numbers of DType in csrc/include/regnet/tensor.hpp; a bool is a byte.
_DTYPES = {
    torch.float32: 0,
    torch.float64: 1,
    torch.bool: 2,
    torch.uint8: 2,
    torch.int8: 3,
    torch.uint16: 4,
    torch.int16: 5,
    torch.uint32: 6,
    torch.int32: 7,
    torch.uint64: 8,
    torch.int64: 9,
}


class NotBuiltError(RuntimeError):
    """There is no compiled module for a device."""


@functools.cache
def isa() -> str:
    """The instruction set whose module runs here, ``"base"`` or ``"v3"``; ``REGNET_ISA`` overrides the choice.

    Raises:
        RuntimeError: the compiled part is missing, or ``REGNET_ISA`` is unknown or not built.
    """
    wanted = os.environ.get("REGNET_ISA")
    if wanted is not None and wanted not in _ISAS:
        raise RuntimeError(f"REGNET_ISA must be one of {', '.join(_ISAS)}, got {wanted!r}")
    if wanted is None:
        wanted = "v3" if _load("base").supports_v3() and importlib.util.find_spec(_MODULES["v3"]) else "base"
    return wanted


@functools.cache
def backend(device: str) -> str:
    """What serves tensors on devices of a type such as ``"cuda"``; ``REGNET_BACKEND`` overrides the choice.

    Returns:
        ``"native"``, a compiled module; or ``"torch"``, plain torch, which warns once where nobody asked for it.

    Raises:
        RuntimeError: ``REGNET_BACKEND`` is unknown, or it is ``native`` and no compiled module serves the device.
    """
    wanted = os.environ.get("REGNET_BACKEND")
    if wanted is not None and wanted not in _BACKENDS:
        raise RuntimeError(f"REGNET_BACKEND must be one of {', '.join(_BACKENDS)}, got {wanted!r}")
    if wanted == "torch":
        return wanted
    try:
        if device == "cpu":
            native()
        elif device == "cuda":
            gpu()
        else:
            raise NotBuiltError(f"regnet has no compiled operators for {device}, only for CPUs and NVIDIA's GPUs")
    except NotBuiltError as error:
        if wanted == "native":
            raise
        warnings.warn(
            f"plain torch computes, more slowly: {error}; REGNET_BACKEND=torch asks for that without this warning",
            stacklevel=2,
        )
        return "torch"
    return "native"


def native_or(fallback: Callable) -> Callable[[Callable], Callable]:
    """Make a kernel leave its work to ``fallback`` where no compiled module serves the device of its first argument."""

    def decorate(kernel: Callable) -> Callable:
        @functools.wraps(kernel)
        def either(tensor: Tensor, *rest: Any) -> Any:
            return (kernel if backend(tensor.device.type) == "native" else fallback)(tensor, *rest)

        return either

    return decorate


@functools.cache
def native() -> ModuleType:
    """The compiled module for this processor."""
    return _load(isa())


@functools.cache
def gpu() -> Any:
    """What serves NVIDIA's GPUs: the module of nvcc, where it was built; else kernels that are compiled when needed.

    Raises:
        NotBuiltError: neither.
    """
    if has_gpu_module():
        return _load("cuda")
    try:
        return Planned(_load("plan"))
    except OSError as error:
        raise NotBuiltError(
            f"the kernels for GPUs are compiled by NVRTC, which is not here ({error}); "
            "`pip install nvidia-cuda-nvrtc` of torch's CUDA version brings it, or nvcc builds them: "
            "`REGNET_CUDA=ON pip install .` in a checkout of regnet"
        ) from error


@functools.cache
def has_gpu_module() -> bool:
    """Whether nvcc compiled a module for GPUs."""
    return importlib.util.find_spec(_MODULES["cuda"]) is not None


def _load(name: str) -> ModuleType:
    try:
        return importlib.import_module(_MODULES[name])
    except ImportError as error:
        how = (
            "REGNET_CUDA=ON pip install .` in a checkout of regnet (needs nvcc)"
            if name == "cuda"
            else "pip install .` in a checkout of regnet (needs a C++17 compiler), or `make build` for development"
        )
        raise NotBuiltError(
            f"regnet's compiled operators are missing or do not load ({error}); build them with `{how}"
        ) from error


def call(operation: str, like: Tensor, *arguments: Any) -> None:
    """Run an operation of the core where ``like`` lives: with the threads of torch, or on its current stream.

    The core sees addresses only, so the tensors must live until this returns; on a GPU torch keeps what was freed for
    later work of the same stream.
    """
    described = [ref(a) if isinstance(a, Tensor) else a for a in arguments]
    if like.device.type == "cuda":
        stream = torch.cuda.current_stream(like.device)
        with torch.cuda.device(like.device):
            getattr(gpu(), operation)((like.device.index, stream.cuda_stream), *described)
    else:
        getattr(native(), operation)(threads(), *described)


def workspace(like: Tensor, numbers: int, dtype: torch.dtype = torch.float64) -> Tensor | None:
    """Room for as many numbers on the device of ``like``; a CPU finds its own."""
    return None if like.device.type == "cpu" else like.new_empty(numbers, dtype=dtype)


def ref(tensor: Tensor) -> tuple[int, int, tuple[int, ...], tuple[int, ...]]:
    """Describe a tensor to the core; strides are passed on, nothing is copied."""
    return tensor.data_ptr(), _DTYPES[tensor.dtype], tuple(tensor.shape), tensor.stride()


GRAIN = 8192  # voxels for which another thread is worth waking


def threads() -> tuple[int, int]:
    """How many threads the core may use, as many as torch; and the least number of voxels for each."""
    return torch.get_num_threads(), GRAIN
