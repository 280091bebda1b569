"""Kernels for NVIDIA's GPUs compiled at run time by NVRTC, which torch's CUDA wheels bring. Compiling needs no GPU."""

import ctypes
import functools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

# What NVRTC has no headers for: one of ours stands in.
_STANDARD = ("algorithm", "array", "cmath", "cstdint", "cstring", "limits", "vector")
_HEADERS = {name: '#include "regnet/nvrtc.hpp"\n' for name in _STANDARD}
_OPTIONS = ("-std=c++17", "-default-device")


def source(body: str, size: int, threads: int, blocks: int) -> str:
    """A kernel named ``kernel`` that runs the functor of type ``body``, which must have the size that its host saw."""
    return f"""
#include "regnet/gpu_lattice.hpp"
#include "regnet/gpu_lines.hpp"
#include "regnet/threads.hpp"
#include "regnet/vote.hpp"
using Body = {body};
static_assert(sizeof(Body) == {size}, "laid out as by the compiler of the host");
extern "C" __global__ void __launch_bounds__({threads}, {blocks})
kernel(const __grid_constant__ Body body, const int64_t count) {{ regnet::go_round(body, count); }}
"""


def compiled(source: str, headers: Mapping[str, str], capability: tuple[int, int]) -> bytes:
    """A binary for GPUs of the compute capability; for one that this NVRTC does not know, PTX that the driver compiles.

    Raises:
        RuntimeError: the GPU is older than all that this NVRTC knows, or the source does not compile.
        OSError: no NVRTC.
    """
    nvrtc, kind, architecture = library(), *_target(10 * capability[0] + capability[1])
    included = {**_HEADERS, **headers}
    names, texts = (_strings(x) for x in (included, included.values()))
    options = _strings([*_OPTIONS, f"-arch={architecture}"])
    program = ctypes.c_void_p()
    code = nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"regnet.cu", len(names), texts, names)
    if code:
        raise RuntimeError(f"NVRTC: error {code}")
    try:
        code = nvrtc.nvrtcCompileProgram(program, len(options), options)
        if code:
            log = _read(nvrtc, "ProgramLog", program).decode(errors="replace").strip("\0\n")
            raise RuntimeError(f"NVRTC of CUDA {version()}: error {code} for {architecture}\n{log}")
        return _read(nvrtc, kind, program)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _target(wanted: int) -> tuple[str, str]:
    """What to compile to, and for which architecture."""
    count = ctypes.c_int()
    library().nvrtcGetNumSupportedArchs(ctypes.byref(count))
    known = (ctypes.c_int * count.value)()
    library().nvrtcGetSupportedArchs(known)
    if wanted in known:
        return "CUBIN", f"sm_{wanted}"
    if older := [one for one in known if one < wanted]:
        return "PTX", f"compute_{max(older)}"
    raise RuntimeError(f"NVRTC of CUDA {version()} has no code for sm_{wanted}, only for {', '.join(map(str, known))}")


def _read(nvrtc: ctypes.CDLL, what: str, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, text)
    return text.raw


def _strings(texts: Any) -> Any:
    return (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))


def version() -> str:
    """Of the CUDA that NVRTC belongs to."""
    numbers = ctypes.c_int(), ctypes.c_int()
    library().nvrtcVersion(*map(ctypes.byref, numbers))
    return ".".join(str(n.value) for n in numbers)


@functools.cache
def library() -> ctypes.CDLL:
    """NVRTC: torch's, else one that the system has.

    Raises:
        OSError: none of them.
    """
    for path in _places():
        # NVRTC opens it by name later, and finds it only where it is in the process already.
        for builtins in sorted(path.parent.glob("libnvrtc-builtins[-.][!a]*")):
            ctypes.CDLL(str(builtins), ctypes.RTLD_GLOBAL)
        return ctypes.CDLL(str(path))
    return ctypes.CDLL("libnvrtc.so")


def _places() -> Iterator[Path]:
    """Of torch's CUDA first, in torch's folder, in the packages beside it, in the toolkit."""
    here, home = Path(torch.__file__).parent, Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    major = (torch.version.cuda or "").split(".")[0]
    for folder, pattern in (
        (here / "lib", "libnvrtc[-.]*so*"),
        (here.parent / "nvidia", f"*/lib/libnvrtc.so.{major}*"),
        (home / "lib64", f"libnvrtc.so.{major}*"),
    ):
        yield from (path for path in sorted(folder.glob(pattern)) if "builtins" not in path.name)
