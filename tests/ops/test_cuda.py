"""On a GPU: every operator as on the CPU, on any stream, the same bits where they are asked for; by the module of nvcc
where it was built, else by kernels compiled at run time.

Not yet run: no machine of the project has had a GPU. What a thread computes is tested in ``test_standin.py``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from regnet import ops
from regnet.ops import _core
from regnet.ops.box import box_sum
from tests.ops.cases import Case, drawn, roomy, smallest
from tests.reference import BOUNDS

built = pytest.mark.skipif(not _core.has_gpu_module(), reason="the module for GPUs is not built")
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")


@built
@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU here")
def test_without_a_driver_the_module_loads_and_a_call_says_what_is_missing() -> None:
    described = [_core.ref(torch.zeros(1, 1, 3)) for _ in range(3)]
    image, coords, out = described
    with pytest.raises(RuntimeError, match=r"^regnet::sample: .*(driver|device)"):
        _core.gpu().sample((0, 0), 0, image, coords, False, None, out, [1], [2], 0)


def both(run: Callable[..., Tensor], *inputs: Tensor, tolerance: float = 1e-5) -> None:
    """``run`` and its gradients in all inputs that have one, here and there."""
    results = []
    for device in ("cpu", "cuda"):
        leaves = [x.detach().to(device).requires_grad_(x.requires_grad) for x in inputs]
        out = run(*leaves)
        wanted = [x for x in leaves if x.requires_grad]
        cotangent = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).to(out.dtype).reshape(out.shape).to(device)
        gradients = torch.autograd.grad(out, wanted, cotangent) if wanted else ()
        results.append([out.detach().cpu(), *(g.cpu() for g in gradients)])
    for here, there in zip(*results, strict=True):
        assert there.dtype == here.dtype
        scale = max(1.0, float(here.abs().nan_to_num(0, 0, 0).max())) if here.numel() else 1.0
        torch.testing.assert_close(there, here, rtol=tolerance, atol=tolerance * scale, equal_nan=True)


@pytest.mark.cuda
@on_gpu
class TestOnAGpu:
    @pytest.mark.parametrize("case", [*smallest(), *roomy(), *drawn(100, seed=4)], ids=str)
    def test_sampling_gives_what_the_cpu_gives(self, case: Case) -> None:
        moving = 0 not in case.orders
        coeff, value = case.coeff().requires_grad_(), case.value().requires_grad_()
        coords, tolerance = case.coords().requires_grad_(moving), 30 * case.tolerance(case.coeff_dtype)
        both(lambda c, x: ops.pull(c, x, *case.options), coeff, coords, tolerance=tolerance)
        both(lambda v, x: ops.push(v, x, case.shape, *case.options), value, coords, tolerance=tolerance)
        if moving:
            both(lambda c, x: ops.grad(c, x, *case.options), coeff, coords, tolerance=tolerance)
            both(lambda c, x: ops.hess(c, x, *case.options), coeff, coords, tolerance=tolerance)

    @pytest.mark.parametrize("bound", BOUNDS)
    @pytest.mark.parametrize("order", range(8))
    def test_filters_and_lattices_give_what_the_cpu_gives(self, order: int, bound: str) -> None:
        image = torch.randn(2, 3, 12, 9, 10, requires_grad=True)
        both(lambda x: ops.prefilter(x, order, bound), image)
        both(lambda x: ops.resize(x, (7, 9, 23), order=order, bound=bound), image)
        both(lambda x: ops.restrict(x, (7, 5, 6), order=order, bound=bound), image)

    def test_the_other_operators_give_what_the_cpu_gives(self) -> None:
        image, flow = torch.randn(2, 3, 20, 21, 22, requires_grad=True), torch.randn(2, 3, 20, 21, 22)
        flow.requires_grad_()
        matrix = (torch.eye(3, 4) + 0.02 * torch.randn(3, 4))[None].requires_grad_()
        labels = torch.randint(0, 9, (2, 1, 20, 21, 22))
        both(lambda v, u, m: ops.warp(v, u, 3, matrix=m), image, flow, matrix, tolerance=1e-4)
        both(lambda u, v: ops.compose(u, v), flow, image)
        both(lambda u: ops.integrate(u, 5), flow, tolerance=1e-4)
        both(lambda u: ops.invert(u * 0.1), flow.detach(), tolerance=1e-4)
        both(lambda u: ops.jacobian_determinant(u), flow)
        both(lambda v: box_sum(v, 9), image)
        both(lambda m, u: ops.warp_labels(m, u), labels, flow.detach())
        both(lambda c: ops.ffd(c, (20, 21, 22), 4), torch.randn(1, 3, 8, 9, 9, requires_grad=True))

    @pytest.mark.parametrize("order", [1, 2, 3, 5])
    def test_derivatives_are_those_of_the_numbers(self, order: int) -> None:
        coeff = torch.randn(1, 2, 5, 6, dtype=torch.float64, device="cuda", requires_grad=True)
        coords = (torch.rand(1, 2, 3, 4, dtype=torch.float64, device="cuda") * 0.4 + 1.55).requires_grad_()
        torch.autograd.gradcheck(lambda c, x: ops.pull(c, x, order), (coeff, coords), nondet_tol=1e-10)
        torch.autograd.gradgradcheck(lambda c, x: ops.pull(c, x, order), (coeff, coords), nondet_tol=1e-10)

    def test_c13_the_same_bits_where_they_are_asked_for(self) -> None:
        value, coords = torch.randn(1, 1, 10**6, 1, 1, device="cuda"), 64 * torch.rand(1, 3, 10**6, 1, 1, device="cuda")
        first, second = (ops.push(value, coords, (64, 64, 64)) for _ in range(2))
        torch.testing.assert_close(first, second, rtol=1e-5, atol=1e-5)
        torch.use_deterministic_algorithms(True)
        try:
            exact, again = (ops.push(value, coords, (64, 64, 64)) for _ in range(2))
        finally:
            torch.use_deterministic_algorithms(False)
        assert torch.equal(exact, again)
        torch.testing.assert_close(exact, first, rtol=1e-5, atol=1e-5)

    @pytest.mark.parametrize("deterministic", [False, True])
    def test_c13_many_ones_into_one_voxel(self, deterministic: bool) -> None:
        torch.use_deterministic_algorithms(deterministic)
        try:
            total = ops.push(torch.ones(1, 1, 10**5, device="cuda"), torch.zeros(1, 1, 10**5, device="cuda"), (2,))
        finally:
            torch.use_deterministic_algorithms(False)
        assert total.flatten().tolist() == [10**5, 0]

    def test_c12_halves_are_added_up_in_single_precision(self) -> None:
        value, coords = torch.ones(1, 1, 4096, device="cuda").half(), torch.zeros(1, 1, 4096, device="cuda").half()
        assert ops.push(value, coords, (2,)).flatten().tolist() == [4096, 0]

    def test_c01_the_last_of_more_than_two_to_the_31_voxels(self) -> None:
        image = torch.zeros(1, 1, 32769, 65536, dtype=torch.float16, device="cuda")
        image[..., -1, -1] = 7
        corners = torch.tensor([[0, 0, 32768, 32768], [0, 65535, 0, 65535]], dtype=torch.float32, device="cuda")
        for order in (0, 1):
            assert ops.pull(image, corners[None, :, :, None], order).flatten().tolist() == [0, 0, 0, 7]

    def test_c01_more_than_two_to_the_31_samples(self) -> None:
        coords = torch.zeros(1, 1, 1, device="cuda").expand(1, 1, 2**31 + 300)
        assert ops.pull(torch.ones(1, 1, 1, device="cuda"), coords).sum(dtype=torch.float64) == 2**31 + 300

    def test_c17_another_stream_needs_no_synchronisation(self) -> None:
        image, flow = torch.randn(1, 2, 99, 98, 97, device="cuda"), torch.randn(1, 3, 99, 98, 97, device="cuda")
        want = ops.warp(image * 2, flow, 3)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            got = ops.warp(image * 2, flow, 3) + 1
        torch.cuda.current_stream().wait_stream(side)
        assert torch.equal(got, want + 1)

    @pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
    def test_c17_the_second_gpu_gives_the_same_numbers(self) -> None:
        image, flow = torch.randn(1, 2, 19, 18, 17), torch.randn(1, 3, 19, 18, 17)
        first, second = (ops.warp(image.to(d), flow.to(d), 3).cpu() for d in ("cuda:0", "cuda:1"))
        assert torch.equal(first, second)
        with pytest.raises(ValueError, match="cuda:0 and cuda:1"):
            ops.warp(image.to("cuda:0"), flow.to("cuda:1"))

    def test_a_thread_that_never_met_the_gpu_can_use_it(self) -> None:
        image, flow = torch.randn(1, 2, 9, 8, 7, device="cuda"), torch.randn(1, 3, 9, 8, 7, device="cuda")
        want, got = ops.warp(image, flow, 3), []
        thread = threading.Thread(target=lambda: got.append(ops.warp(image, flow, 3)))
        thread.start()
        thread.join()
        assert torch.equal(got[0], want)

    def test_a_graph_captures_the_operators(self) -> None:
        image, flow = torch.randn(1, 2, 19, 18, 17, device="cuda"), torch.randn(1, 3, 19, 18, 17, device="cuda")
        ops.warp(image, flow, 3)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = ops.warp(image, flow, 3)
        flow.zero_()
        graph.replay()
        torch.testing.assert_close(out, image, rtol=1e-4, atol=1e-4)

    def test_c14_under_autocast_the_operator_works_as_outside(self) -> None:
        image, flow = torch.randn(1, 2, 19, 18, 17, device="cuda"), torch.randn(1, 3, 19, 18, 17, device="cuda")
        with torch.autocast("cuda", torch.float16):
            inside = ops.warp(image, flow, 3)
        assert torch.equal(inside, ops.warp(image, flow, 3))

    def test_a_compiled_function_gives_what_the_eager_one_gives(self) -> None:
        def step(image: Tensor, flow: Tensor) -> Tensor:
            return ops.warp(image, ops.integrate(flow, 3), 1).square().mean()

        image = torch.randn(1, 1, 19, 18, 17, device="cuda")
        flow = torch.randn(1, 3, 19, 18, 17, device="cuda", requires_grad=True)
        (want,) = torch.autograd.grad(step(image, flow), flow)
        (got,) = torch.autograd.grad(torch.compile(step, fullgraph=True)(image, flow), flow)
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-6)

    def test_nothing_waits_for_the_gpu(self) -> None:
        image = torch.randn(1, 2, 19, 18, 17, device="cuda", requires_grad=True)
        flow = torch.randn(1, 3, 19, 18, 17, device="cuda", requires_grad=True)
        torch.cuda.set_sync_debug_mode("error")
        try:
            ops.warp(image, flow, 3).sum().backward()
        finally:
            torch.cuda.set_sync_debug_mode("default")
