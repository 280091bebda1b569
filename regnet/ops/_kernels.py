"""What runs on NVIDIA's GPUs without nvcc: kernels compiled when first needed, kept on disk, launched by the driver.

The module ``_plan`` says what to launch: the type of a functor of ``csrc/include/regnet``, its bytes, and for how many
samples. The functor is compiled from the sources that the same module carries, so the bytes fit.
"""

import contextlib
import ctypes
import functools
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from regnet.ops import _nvrtc


class Planned:
    """The operations of the module that nvcc compiles, under the same names.

    Raises:
        OSError: there is no NVRTC to compile with.
    """

    architectures = "of the GPUs in use"

    def __init__(self, plans: ModuleType) -> None:
        self._plans = plans
        self.toolkit = _nvrtc.version()

    def __getattr__(self, operation: str) -> Callable[..., None]:
        planned = getattr(self._plans, operation)

        def run(team: tuple[int, int], *arguments: Any) -> None:
            plan: list[tuple[str, bytes, int, int]] = []
            planned(plan, *arguments)
            device, stream = team
            try:
                with _context(device):
                    for body, data, blocks, count in plan:
                        kernel = _kernel(self._plans, body, len(data), device)
                        _launch(kernel, data, blocks, self._plans.threads, count, stream)
            except RuntimeError as error:
                raise RuntimeError(f"regnet::{operation}: {error}") from error

        return run


def _launch(kernel: Any, data: bytes, blocks: int, threads: int, count: int, stream: int) -> None:
    body, samples = ctypes.create_string_buffer(data, len(data)), ctypes.c_int64(count)
    arguments = (ctypes.c_void_p * 2)(ctypes.addressof(body), ctypes.addressof(samples))  # read before it returns
    shape = [ctypes.c_uint(n) for n in (blocks, 1, 1, threads, 1, 1, 0)]
    _check(driver().cuLaunchKernel(kernel, *shape, ctypes.c_void_p(stream), arguments, None))


@functools.cache
def _kernel(plans: ModuleType, body: str, size: int, device: int) -> Any:
    module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    text = _nvrtc.source(body, size, plans.threads, plans.blocks)
    image = binary(text, plans.sources, torch.cuda.get_device_capability(device))
    _check(driver().cuModuleLoadData(ctypes.byref(module), image))
    _check(driver().cuModuleGetFunction(ctypes.byref(kernel), module, b"kernel"))
    return kernel


def binary(source: str, headers: dict[str, str], capability: tuple[int, int]) -> bytes:
    """The compiled kernel, from ``~/.cache/regnet`` if it was compiled before."""
    named = repr((source, sorted(headers.items()), capability, _nvrtc.version()))
    folder = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "regnet")
    if not folder.is_absolute():  # an account without a home
        return _nvrtc.compiled(source, headers, capability)
    kept = folder / hashlib.sha256(named.encode()).hexdigest()
    with contextlib.suppress(OSError):
        return kept.read_bytes()
    image = _nvrtc.compiled(source, headers, capability)
    with contextlib.suppress(OSError):  # where nothing can be kept, it is compiled again next time
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(image)
        os.replace(file.name, kept)
    return image


@contextlib.contextmanager
def _context(device: int) -> Iterator[None]:
    """Torch's context of the device, on whichever thread this is."""
    _check(driver().cuCtxPushCurrent_v2(_primary(device)))
    try:
        yield
    finally:
        driver().cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


@functools.cache
def _primary(device: int) -> Any:
    handle, context = ctypes.c_int(), ctypes.c_void_p()
    _check(driver().cuInit(0))
    _check(driver().cuDeviceGet(ctypes.byref(handle), device))
    _check(driver().cuDevicePrimaryCtxRetain(ctypes.byref(context), handle))
    return context


@functools.cache
def driver() -> Any:
    """The library of NVIDIA's driver.

    Raises:
        OSError: none is installed.
    """
    return ctypes.CDLL("libcuda.so.1")


def _check(code: int) -> None:
    if code:
        text = ctypes.c_char_p()
        driver().cuGetErrorString(code, ctypes.byref(text))
        raise RuntimeError(f"{(text.value or b'unknown error').decode()} (CUDA's error {code})")
