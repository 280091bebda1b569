"""The sources for GPUs, run on a CPU by a small stand-in of the CUDA runtime: the same numbers as the CPU modules.

It shows what a thread computes and that every sample has its thread; not what a GPU makes of it.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import math
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from regnet import ops
from regnet.ops import _core, _families
from regnet.ops._lattice import Ramps, lattice
from regnet.ops.box import box_sum
from tests.ops.cases import Case, drawn, roomy, smallest
from tests.reference import BOUNDS

ROOT = Path(__file__).parents[2]
COMPILER = [
    "c++",
    "-std=c++17",
    "-fPIC",
    "-fvisibility=hidden",
    f"-I{ROOT}/csrc/include",
    f"-I{ROOT}/tests/ops/standin",
]
AS_CUDA = ["-D__CUDACC__", '-DREGNET_ARCHITECTURES="sm_90, PTX of 90"', "-xc++"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (ROOT / "csrc").is_dir() or not shutil.which("c++"), reason="no sources or no compiler here"
    ),
]


@pytest.fixture(scope="session")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The module ``_cuda``, for the stand-in."""
    pybind11 = pytest.importorskip("pybind11")
    # Of the several processes of one run of the suite, the first compiles; the others wait.
    several = "PYTEST_XDIST_WORKER" in os.environ
    folder = tmp_path_factory.getbasetemp().parent / "standin" if several else tmp_path_factory.mktemp("standin")
    folder.mkdir(exist_ok=True)
    made = folder / "_standin.so"
    with (folder / "lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            compile_into(folder, made, pybind11.get_include())
    spec = importlib.util.spec_from_file_location("_standin", made)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def compile_into(folder: Path, module: Path, pybind11: str) -> None:
    headers = ["-isystem", pybind11, "-isystem", sysconfig.get_paths()["include"]]
    defined = ["-DREGNET_CUDA", "-DREGNET_MODULE=_standin", '-DREGNET_TOOLKIT="none"', '-DREGNET_ARCHITECTURES="90"']

    def compiled(source: Path) -> str:
        made = str(folder / f"{source.name}.o")
        options = AS_CUDA if source.suffix == ".cu" else [*headers, *defined]
        subprocess.run([*COMPILER, "-O1", *options, "-c", str(source), "-o", made], check=True, capture_output=True)
        return made

    sources = [ROOT / "csrc/bind.cpp", *sorted((ROOT / "csrc/src").glob("*.cu"))]
    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compiled, sources))
    subprocess.run(["c++", "-shared", *objects, "-o", str(module)], check=True)


@contextlib.contextmanager
def served_by(module: ModuleType) -> Iterator[None]:
    """The operators as on a GPU, though the tensors are the CPU's."""

    def call(operation: str, like: Tensor, *arguments: Any) -> None:
        described = [_core.ref(a) if isinstance(a, Tensor) else a for a in arguments]
        getattr(module, operation)((0, 0), *described)

    def workspace(like: Tensor, numbers: int, dtype: torch.dtype = torch.float64) -> Tensor:
        return like.new_empty(numbers, dtype=dtype)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_core, "call", call)
        patch.setattr(_core, "workspace", workspace)
        yield


def assert_same(module: ModuleType, run: Any, tolerance: float = 1e-12) -> None:
    """``run()`` gives tensors: from the stand-in those that the CPU gives."""
    want = run()
    with served_by(module):
        got = run()
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g, w, rtol=tolerance, atol=tolerance, equal_nan=True)


def with_gradients(out: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    cotangent = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).reshape(out.shape)
    wanted = [x for x in inputs if x.requires_grad]
    return out.detach(), *torch.autograd.grad(out, wanted, cotangent)


@pytest.mark.parametrize("case", [*smallest(), *roomy(), *drawn(100, seed=3)], ids=str)
def test_every_sampling_operator_gives_what_the_cpu_gives(case: Case, module: ModuleType) -> None:
    moving = 0 not in case.orders

    def run() -> Iterator[Tensor]:
        coeff, value = case.coeff().requires_grad_(), case.value().requires_grad_()
        coords = case.coords().requires_grad_(moving)
        yield from with_gradients(ops.pull(coeff, coords, *case.options), coeff, coords)
        yield from with_gradients(ops.push(value, coords, case.shape, *case.options), value, coords)
        if moving:
            yield from with_gradients(ops.grad(coeff, coords, *case.options), coeff, coords)
            yield ops.hess(coeff.detach(), coords.detach(), *case.options)

    assert_same(module, lambda: list(run()), 30 * case.tolerance(case.coeff_dtype))


@pytest.mark.parametrize("order", [0, 1, 2, 3, 4])
def test_far_and_missing_coordinates_give_what_the_cpu_gives(order: int, module: ModuleType) -> None:
    odd = [float("nan"), float("inf"), -float("inf"), 2.0**30, 1e30, 2.0**23 + 1, -4e6, -40.5, 57.0, 4.0]
    coords = torch.tensor(odd).reshape(1, 1, -1).expand(1, 2, -1)[..., None]
    coeff = torch.randn(1, 2, 9, 8).where(torch.rand(1, 2, 9, 8) > 0.1, torch.inf)
    for bound in BOUNDS:
        options = order, bound
        assert_same(
            module,
            lambda o=options: [ops.pull(coeff, coords, *o), ops.push(torch.ones(1, 1, 10, 1), coords, (9, 8), *o)],
            1e-5,
        )


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30, 1e-200, 1e200])
@pytest.mark.parametrize("k", range(3))
def test_c13_the_deterministic_scatter_gives_what_the_cpu_gives(k: int, size: float, module: ModuleType) -> None:
    coords = 10 * torch.rand(2, 2, 40, 30, dtype=torch.float64) - 1
    value = size * torch.randn(2, 3, *[2] * k, 40, 30, dtype=torch.float64)
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 2e-6)):
        if dtype == torch.float32 and abs(math.log10(size)) > 38:
            continue  # more than it holds
        how = (False, [3, 2], [2, 1], 1)
        inputs = value.to(dtype), coords.to(dtype), None, (9, 8), k
        want = _families._scatter_kernel(*inputs, *how)
        with served_by(module):
            got = _families._scatter_whole(*inputs, how)
        torch.testing.assert_close(got, want, rtol=tolerance, atol=float(tolerance * want.abs().max()))


def test_c13_deterministic_sums_of_zeros_and_of_infinities(module: ModuleType) -> None:
    how = (False, [1], [2], 1)
    with served_by(module):
        zeros = _families._scatter_whole(torch.zeros(1, 1, 4), torch.rand(1, 1, 4), None, (3,), 0, how)
        ones = _families._scatter_whole(torch.ones(1, 1, 100_000), torch.zeros(1, 1, 100_000), None, (3,), 0, how)
        broken = torch.tensor([[[1.0, float("inf")]]])
        lost = _families._scatter_whole(broken, torch.zeros(1, 1, 2), None, (3,), 0, how)
    assert not zeros.any()
    assert ones.flatten().tolist() == [100_000, 0, 0]
    assert lost.isnan().all()


@pytest.mark.parametrize("blocks", [1, 3])
def test_a_kernel_goes_round_any_grid(blocks: int, module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_BLOCKS", str(blocks))
    image, flow = torch.randn(2, 2, 11, 13, 17, dtype=torch.float64), torch.randn(2, 3, 11, 13, 17, dtype=torch.float64)
    assert flow[:, 0].numel() % (256 * blocks) > 0  # a tail, after several rounds
    matrix = torch.eye(3, 4, dtype=torch.float64)[None] + 0.01

    def run() -> tuple[Tensor, ...]:
        inputs = [x.clone().requires_grad_() for x in (image, flow, matrix)]
        return with_gradients(ops.warp(inputs[0], inputs[1], 3, matrix=inputs[2]), *inputs)

    assert_same(module, run, 1e-11)


def test_where_there_are_no_samples_nothing_is_launched(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_ERROR", "209")
    with served_by(module):
        assert ops.pull(torch.zeros(1, 1, 3, 4), torch.zeros(1, 2, 0, 2)).shape == (1, 1, 0, 2)
        assert not ops.push(torch.zeros(1, 1, 0, 2), torch.zeros(1, 2, 0, 2), (3, 4)).any()


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("order", range(2, 8))
def test_the_prefilter_and_its_adjoint_give_what_the_cpu_gives(order: int, bound: str, module: ModuleType) -> None:
    def run(dtype: torch.dtype, *sizes: int) -> list[Tensor]:
        image = torch.linspace(-1, 2, 6 * torch.Size(sizes).numel(), dtype=dtype).sin().reshape(2, 3, *sizes)
        image.requires_grad_()
        return list(with_gradients(ops.prefilter(image, order, bound), image))

    for sizes in ((1,), (2,), (90,), (5, 7), (4, 1, 9)):
        assert_same(module, lambda sizes=sizes: run(torch.float64, *sizes))
    assert_same(module, lambda: run(torch.float32, 6, 31), 2e-5)


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("order", range(8))
def test_a_lattice_gives_what_the_cpu_gives(order: int, adjoint: bool, module: ModuleType) -> None:
    image = torch.randn(2, 3, 6, 7, 5, dtype=torch.float64)
    for bound in range(7):
        ramps = Ramps([1.5, 1.0, 2.0], [6, 1, 3], [-1, 2, 0], [9, 1, 2])
        shape = [9, 7, 4]
        run = lambda b=bound, r=ramps, s=shape: [lattice(image, s, [order] * 3, [b] * 3, r, adjoint, image.dtype)]  # noqa: E731
        assert_same(module, run)


def test_box_sums_of_single_precision_are_rounded_once_an_axis(module: ModuleType) -> None:
    image = torch.randn(2, 1, 40, 30, 20) + 1000
    for window in (1, 3, 9, 101):
        assert_same(module, lambda w=window: [box_sum(image, w)], 4e-7)
        assert_same(module, lambda w=window: [box_sum(image.double(), w)])


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_labels_win_as_on_the_cpu(mode: str, dtype: torch.dtype, module: ModuleType) -> None:
    for ndim in (1, 2, 3):
        size = (9, 8, 7)[:ndim]
        labels, flow = torch.randint(0, 5, (2, 1, *size)).to(dtype), 3 * torch.randn(2, ndim, *size)
        assert_same(module, lambda m=labels, u=flow: [ops.warp_labels(m, u, mode, background=7)])


def test_c77_an_error_names_the_operator_and_what_was_built(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STANDIN_ERROR", "209")
    with (
        served_by(module),
        pytest.raises(RuntimeError, match=r"regnet::sample: no kernel image .* architectures sm_90, PTX of 90"),
    ):
        ops.pull(torch.zeros(1, 1, 3), torch.zeros(1, 1, 3))


def test_c01_positions_beyond_two_to_the_31_are_counted_in_64_bits(tmp_path: Path) -> None:
    (tmp_path / "main.cu").write_text(
        """
        #include "regnet/launch.cuh"
        struct Samples { int64_t size[3]; };
        int main() {
            using namespace regnet;
            const Samples samples{{3000, 2000, 1500}};  // 9e9 in a batch item
            const int64_t item = int64_t(3000) * 2000 * 1500;
            for (int64_t count : {int64_t(2147483647), 3 * item})
                for (int64_t i : {int64_t(0), int64_t(1), count / 7, count / 2 + 11, count - 1}) {
                    const Unravel<3> unravel(samples, count);
                    int64_t p[3];
                    const int64_t n = unravel(i, p);
                    for (int d = 0; d < 3; ++d) if (p[d] < 0 || p[d] >= samples.size[d]) return 1;
                    if (((n * 3000 + p[0]) * 2000 + p[1]) * 1500 + p[2] != i) return 2;
                    if (unravel.narrow != (count < (int64_t(1) << 31))) return 3;
                }
            return 0;
        }
        """
    )
    program = str(tmp_path / "main")
    subprocess.run([*COMPILER, *AS_CUDA, str(tmp_path / "main.cu"), "-o", program], check=True)
    assert subprocess.run([program], check=False).returncode == 0
