"""Kernels for GPUs that are compiled at run time: NVRTC takes every one of them, and what the plans say gives the
numbers of the CPU when a stand-in for NVRTC and the driver runs it on the host. No GPU is needed."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from regnet import ops
from regnet.ops import _core, _kernels, _nvrtc
from tests.ops.test_standin import AS_CUDA, COMPILER, served_by, with_gradients

PLANS = pytest.importorskip("regnet.ops._plan", reason="the package was not built")
HERE = 9, 0  # a compute capability

try:
    FOUND = bool(_nvrtc.library())
except OSError:
    FOUND = False
needs_nvrtc = pytest.mark.skipif(not FOUND, reason="no NVRTC here")


def planned(operation: str, *arguments: Any) -> list[tuple[str, bytes, int, int]]:
    plan: list[tuple[str, bytes, int, int]] = []
    getattr(PLANS, operation)(plan, *(_core.ref(a) if isinstance(a, Tensor) else a for a in arguments))
    return plan


def every_kind() -> dict[str, list[tuple[str, bytes, int, int]]]:
    """The plans of each operation, of several orders."""
    image, flow, work = torch.zeros(2, 1, 4, 5, 6), torch.zeros(2, 3, 4, 5, 6), torch.zeros(999, dtype=torch.float64)
    plans = {}
    for order in (0, 1, 3):
        how = ([order] * 3, [3] * 3, 0)
        plans[f"sample {order}"] = planned("sample", 0, image, flow, True, None, image, *how)
        plans[f"scatter {order}"] = planned("scatter", 0, image, flow, True, None, image, *how)
        plans[f"contract {order}"] = planned("contract", 0, image, flow, True, None, image, flow, *how)
    fifth = ([5] * 3, [0] * 3, 1)
    plans["hess 5"] = planned("sample", 2, image, flow, True, None, torch.zeros(2, 9, 4, 5, 6), *fifth)
    plans["whole 5"] = planned("scatter_whole", 0, image, flow, True, None, image.long(), *fifth)
    plans["prefilter 5"] = planned("prefilter", image, image.clone(), work, 0, 5, 0, False)
    plans["box_sum"] = planned("box_sum", image.double(), image.double(), work, 0, 3)
    for adjoint in (False, True):
        lattice = planned("lattice", image, image.clone(), work, 0, 3, 3, 1.0, 1.0, 0.0, 1.0, adjoint)
        plans[f"lattice {adjoint}"] = lattice
    labels = torch.zeros(2, 1, 4, 5, 6, dtype=torch.uint8)
    plans["vote"] = planned("vote", labels, flow, True, None, labels, 1, 0)
    return plans


@needs_nvrtc
@pytest.mark.parametrize(("name", "plan"), every_kind().items())
def test_nvrtc_compiles_every_kind_of_kernel(name: str, plan: list[tuple[str, bytes, int, int]]) -> None:
    assert plan
    for body, data, _, _ in plan:
        image = _nvrtc.compiled(_nvrtc.source(body, len(data), PLANS.threads, PLANS.blocks), PLANS.sources, HERE)
        assert image.startswith(b"\x7fELF")


@needs_nvrtc
def test_c77_a_gpu_newer_than_nvrtc_gets_ptx_and_one_older_an_error_that_names_both() -> None:
    body, data, _, _ = planned("box_sum", torch.zeros(1, 1, 9), torch.zeros(1, 1, 9), None, 0, 3)[0]
    text = _nvrtc.source(body, len(data), PLANS.threads, PLANS.blocks)
    assert b".visible .entry kernel(" in _nvrtc.compiled(text, PLANS.sources, (99, 0))
    with pytest.raises(RuntimeError, match=r"NVRTC of CUDA \d+\.\d+ has no code for sm_30, only for .*\b90\b"):
        _nvrtc.compiled(text, PLANS.sources, (3, 0))


@needs_nvrtc
def test_a_functor_that_the_host_laid_out_otherwise_does_not_compile() -> None:
    body, data, _, _ = planned("box_sum", torch.zeros(1, 1, 9), torch.zeros(1, 1, 9), None, 0, 3)[0]
    text = _nvrtc.source(body, len(data) + 8, PLANS.threads, PLANS.blocks)
    with pytest.raises(RuntimeError, match=r"error 6 for sm_90\n(.|\n)*laid out as by the compiler of the host"):
        _nvrtc.compiled(text, PLANS.sources, HERE)


class Driver:
    """The driver, for "binaries" that are names of shared objects for the host."""

    def __init__(self) -> None:
        self.device = 0  # that is to be in use
        self.current: list[int] = []
        self.loaded: list[ctypes.CDLL] = []
        self.launched: list[tuple[int, int, int | None]] = []
        self.fails = 0

    def cuInit(self, flags: int) -> int:
        return 0

    def cuDeviceGet(self, handle: Any, device: int) -> int:
        handle._obj.value = 10 + device
        return 0

    def cuDevicePrimaryCtxRetain(self, context: Any, handle: ctypes.c_int) -> int:
        context._obj.value = 100 + handle.value
        return 0

    def cuCtxPushCurrent_v2(self, context: ctypes.c_void_p) -> int:
        self.current.append(context.value or 0)
        return 0

    def cuCtxPopCurrent_v2(self, context: Any) -> int:
        self.current.pop()
        return 0

    def cuModuleLoadData(self, module: Any, image: bytes) -> int:
        assert self.current == [110 + self.device]
        self.loaded.append(ctypes.CDLL(image.decode()))
        module._obj.value = len(self.loaded)
        return 0

    def cuModuleGetFunction(self, kernel: Any, module: ctypes.c_void_p, name: bytes) -> int:
        assert name == b"kernel"
        kernel._obj.value = module.value
        return 0

    def cuLaunchKernel(self, kernel: ctypes.c_void_p, *rest: Any) -> int:
        *shape, stream, arguments, extra = rest
        blocks, *ones, threads, one, another, shared = (n.value for n in shape)
        assert (self.current, ones, one, another, shared, extra) == ([110 + self.device], [1, 1], 1, 1, 0, None)
        if not self.fails:
            self.launched.append((blocks, threads, stream.value))
            self.loaded[kernel.value - 1].go(blocks, threads, arguments)
        return self.fails

    def cuGetErrorString(self, code: int, text: Any) -> int:
        text._obj.value = b"an illegal address"
        return 0


GO = """
extern "C" __attribute__((visibility("default"))) void go(unsigned blocks, unsigned threads, void** arguments) {
    gridDim = dim3(blocks);
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x)
            kernel(*static_cast<Body*>(arguments[0]), *static_cast<int64_t*>(arguments[1]));
}
"""


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    """Kernels compiled for the host, from the sources that the module carries."""
    if not shutil.which("c++"):
        pytest.skip("no compiler here")
    fake = Driver()
    made: list[str] = []

    def compiled(source: str, headers: dict[str, str], capability: tuple[int, int]) -> bytes:
        assert capability == HERE
        folder = tmp_path / str(len(made))
        (folder / "regnet").mkdir(parents=True)
        for name, text in headers.items():
            (folder / name).write_text(text)
        (folder / "kernel.cu").write_text(f"#include <cuda_runtime.h>\n{source}{GO}")
        made.append(str(folder / "kernel.so"))
        own = [word for word in COMPILER if not word.endswith("csrc/include")]
        words = [*own, f"-I{folder}", *AS_CUDA, "-shared", str(folder / "kernel.cu"), "-o", made[-1]]
        subprocess.run(words, check=True)
        return made[-1].encode()

    monkeypatch.setattr(_nvrtc, "compiled", compiled)
    monkeypatch.setattr(_nvrtc, "version", lambda: "0.0")
    monkeypatch.setattr(_kernels, "driver", lambda: fake)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: HERE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield fake
    assert not fake.current
    _kernels._kernel.cache_clear()
    _kernels._primary.cache_clear()


@pytest.mark.slow
def test_plans_that_are_carried_out_give_what_the_cpu_gives(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, flow = torch.randn(2, 2, 5, 6, 7), 2 * torch.randn(2, 3, 5, 6, 7)

    def run() -> list[Tensor]:
        leaves = [x.clone().requires_grad_() for x in (image, flow)]
        warped = with_gradients(ops.warp(leaves[0], leaves[1]), *leaves)
        return [*warped, ops.prefilter(image, 5, "zero"), ops.box_sum(image, 3), ops.restrict(image, (3, 6, 7))]

    want = run()
    for _ in range(2):  # the second time they are there
        with served_by(_kernels.Planned(PLANS)):
            got = run()
        for g, w in zip(got, want, strict=True):
            torch.testing.assert_close(g, w, rtol=1e-5, atol=1e-5)
        compiled = len(list((tmp_path / "cache/regnet").iterdir()))
        assert len(driver.loaded) == compiled > 6
    for blocks, threads, stream in driver.launched:
        assert (1 <= blocks <= 4, threads, stream) == (True, 256, None)

    _kernels._kernel.cache_clear()  # as in another process, where nothing is compiled again
    monkeypatch.setattr(_nvrtc, "compiled", None)
    with served_by(_kernels.Planned(PLANS)):
        run()


def test_an_account_without_a_home_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr(_kernels.os.path, "expanduser", lambda path: path)
    monkeypatch.setattr(_nvrtc, "version", lambda: "0.0")
    monkeypatch.setattr(_nvrtc, "compiled", lambda *_: b"made")
    assert _kernels.binary("text", {}, HERE) == b"made"
    assert not list(tmp_path.iterdir())


def test_c17_the_second_gpu_has_kernels_of_its_own_and_the_stream_is_the_callers(driver: Driver) -> None:
    image, out = torch.arange(5.0).reshape(1, 1, 5), torch.empty(1, 1, 5)
    run = _kernels.Planned(PLANS).box_sum
    for driver.device, stream in ((0, 0), (1, 70), (0, 71)):
        run((driver.device, stream), _core.ref(image), _core.ref(out.zero_()), None, 0, 3)
        assert out.flatten().tolist() == [1, 3, 6, 9, 7]
    assert [stream for _, _, stream in driver.launched] == [None, 70, 71]
    assert len(driver.loaded) == 2


def test_an_error_of_the_driver_names_the_operator_and_leaves_the_context(driver: Driver) -> None:
    driver.fails = 700
    image = torch.zeros(1, 1, 9)
    with (
        served_by(_kernels.Planned(PLANS)),
        pytest.raises(RuntimeError, match=r"^regnet::box_sum: an illegal address \(CUDA's error 700\)$"),
    ):
        ops.box_sum(image, 3)
