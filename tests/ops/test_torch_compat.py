"""``grid_sample`` and its adjoint: torch's numbers wherever torch has them, and a slow reference where it has none."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, jvp, vmap

from regnet import ops
from tests import reference
from tests.ops.cases import CHECK, DTYPES, LAYOUTS, laid_out, off_knots

SHAPES = [((7,), (9,)), ((5, 7), (4, 6)), ((5, 4, 6), (3, 5, 4))]
MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")

every_shape = pytest.mark.parametrize(("shape", "out"), SHAPES, ids=str)
every_mode = pytest.mark.parametrize("mode", MODES)
every_padding = pytest.mark.parametrize("padding", PADDINGS)
both_alignments = pytest.mark.parametrize("align", [False, True])
torch_has = pytest.mark.parametrize(
    ("shape", "out", "mode"), [(*s, mode) for s in SHAPES[1:] for mode in MODES if len(s[0]) == 2 or mode != "bicubic"]
)


def normalised(coords: Tensor, shape: tuple[int, ...], align: bool) -> Tensor:
    """(N, D, *out) in voxels -> (N, *out, D), last axis first, by the definition."""
    axes = [2 * x / (n - 1) - 1 if align else (2 * x + 1) / n - 1 for x, n in zip(coords.unbind(1), shape, strict=True)]
    return torch.stack(axes[::-1], -1)


def inputs(
    shape: tuple[int, ...], out: tuple[int, ...], align: bool, reach: float = 12.0, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, Tensor]:
    """image (2, 3, *shape), grid (2, *out, D) off the knots, half of it near and half of it far, y (2, 3, *out)."""
    random = np.random.default_rng(len(shape))
    size = (2, len(shape), *out)
    near, far = off_knots(random, size, -1, max(shape)), off_knots(random, size, -reach, reach)
    coords = torch.where(torch.from_numpy(random.random(size) < 0.5), near, far)
    image, y = (torch.from_numpy(random.standard_normal((2, 3, *s))).to(dtype) for s in (shape, out))
    return image, normalised(coords, shape, align).to(dtype), y


def close(got: Tensor, want: Any, tolerance: float) -> None:
    want = reference.array(want)
    np.testing.assert_allclose(reference.array(got), want, rtol=0, atol=tolerance * max(1.0, np.abs(want).max()))


@torch_has
@every_padding
@both_alignments
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_values_and_gradients_are_torchs(
    shape: tuple[int, ...], out: tuple[int, ...], mode: str, padding: str, align: bool, dtype: torch.dtype
) -> None:
    tolerance = 1e-12 if dtype == torch.float64 else 2e-5
    image, grid, y = inputs(shape, out, align, dtype=dtype)
    results = []
    for f in (F.grid_sample, ops.grid_sample):
        leaves = image.clone().requires_grad_(), grid.clone().requires_grad_()
        value = f(*leaves, mode, padding, align)
        results.append((value, *torch.autograd.grad(value, leaves, y)))
    for got, want in zip(results[1], results[0], strict=True):
        assert got.dtype == dtype
        close(got, want, tolerance)
    adjoint = ops.grid_sample_adjoint(y, grid, shape, mode, padding, align)
    assert adjoint.dtype == dtype
    close(adjoint, results[0][1], tolerance)


@torch_has
@every_padding
@both_alignments
def test_knots_ties_and_edges_of_the_view_are_torchs(
    shape: tuple[int, ...], out: tuple[int, ...], mode: str, padding: str, align: bool
) -> None:
    halves = torch.arange(-4 * max(shape), 4 * max(shape) + 1, dtype=torch.float64) / 2
    coords = torch.stack([halves.roll(5 * d) for d in range(len(shape))]).reshape(
        1, len(shape), -1, *[1] * (len(shape) - 1)
    )
    for n in (4, 8):  # so that the grid holds voxels and their halves exactly, and nearest meets every tie
        size = (n,) * len(shape)
        grid = normalised(coords, size, False) if not align else normalised(coords, (n + 1,) * len(shape), True)
        image = torch.randn(1, 2, *[n + align] * len(shape), dtype=torch.float64)
        want = F.grid_sample(image, grid, mode, padding, align)
        close(ops.grid_sample(image, grid, mode, padding, align), want, 1e-12)
        close(ops.grid_sample(image.float(), grid.float(), mode, padding, align), want, 2e-5)


@every_mode
@every_padding
def test_a_resized_grid_of_torchs_meets_the_same_nearest_voxels(mode: str, padding: str) -> None:
    image = torch.randn(1, 1, 10, 6)
    for size, align in itertools.product([(5, 3), (20, 12), (15, 9), (40, 18)], (False, True)):
        grid = F.affine_grid(torch.eye(2, 3)[None], [1, 1, *size], align_corners=align)
        want = F.grid_sample(image, grid, mode, padding, align)
        close(ops.grid_sample(image, grid, mode, padding, align), want, 2e-5)


@torch_has
@every_padding
@both_alignments
def test_axes_of_one_voxel_are_torchs(
    shape: tuple[int, ...], out: tuple[int, ...], mode: str, padding: str, align: bool
) -> None:
    for axis in range(len(shape)):
        size = tuple(1 if d == axis else n for d, n in enumerate(shape))
        image = torch.randn(2, 1, *size, dtype=torch.float64)
        grid = 3 * torch.rand(2, *out, len(shape), dtype=torch.float64) - 1.5
        close(
            ops.grid_sample(image, grid, mode, padding, align), F.grid_sample(image, grid, mode, padding, align), 1e-12
        )


def keys(x: np.ndarray[Any, Any], degree: int) -> np.ndarray[Any, Any]:
    """Keys' kernel as he wrote it, a = -3/4, and its derivatives."""
    a, s = -0.75, np.abs(x)
    inner = np.polynomial.Polynomial([1, 0, -(a + 3), a + 2]).deriv(degree)
    outer = np.polynomial.Polynomial([-4 * a, 8 * a, -5 * a, a]).deriv(degree)
    return np.sign(x) ** degree * np.where(s < 1, inner(s), np.where(s < 2, outer(s), 0))


def keys_matrix(x: np.ndarray[Any, Any], n: int, bound: str, degree: int = 0) -> np.ndarray[Any, Any]:
    """(points, n): the signal continued by its bound, its kernel seen from every point."""
    matrix = np.zeros((len(x), n))
    for i in range(-60, 60):
        j, sign = reference.fold(bound, i, n)
        matrix[:, j] += sign * keys(x - i, degree)
    return matrix


def dense_bicubic(
    image: Tensor, grid: Tensor, padding: str, align: bool, degree: int = 0
) -> list[np.ndarray[Any, Any]]:
    """The value, or its derivatives along x, y, z in normalised units, by dense matrices."""
    shape = image.shape[2:]
    bound = {"zeros": "zero", "border": "replicate", "reflection": "dct1" if align else "dct2"}[padding]
    scale = [(n - 1) / 2 if align else n / 2 for n in shape]
    letters = "ijk"[: len(shape)]
    equation = ",".join("p" + a for a in letters) + f",c{letters}->cp"
    results = []
    for k in range(len(shape) if degree else 1):
        derived = len(shape) - 1 - k
        out = []
        for v, g in zip(reference.array(image), reference.array(grid), strict=True):
            x = [g[..., len(shape) - 1 - d].ravel() * scale[d] + (n - 1) / 2 for d, n in enumerate(shape)]
            w = [keys_matrix(x[d], n, bound, degree * (d == derived)) for d, n in enumerate(shape)]
            out.append(np.einsum(equation, *w, v) * (scale[derived] if degree else 1))
        results.append(np.stack(out).reshape(*image.shape[:2], *grid.shape[1:-1]))
    return results


@every_shape
@every_padding
@both_alignments
def test_bicubic_is_the_product_of_keys_kernels(
    shape: tuple[int, ...], out: tuple[int, ...], padding: str, align: bool
) -> None:
    image, grid, y = inputs(shape, out, align)
    leaves = image.requires_grad_(), grid.requires_grad_()
    value = ops.grid_sample(*leaves, "bicubic", padding, align)
    close(value, dense_bicubic(image, grid, padding, align)[0], 1e-12)
    (by_grid,) = torch.autograd.grad(value, grid, y)
    slopes = dense_bicubic(image, grid, padding, align, 1)
    close(by_grid, np.stack([(y.numpy() * slope).sum(1) for slope in slopes], -1), 1e-11)
    close(ops.grid_sample(image.float(), grid.float(), "bicubic", padding, align), value, 2e-5)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@every_padding
@both_alignments
def test_one_axis_is_torchs_plane_of_one_row(mode: str, padding: str, align: bool) -> None:
    image, grid, _ = inputs(*SHAPES[0], align)
    wide = torch.cat([grid, torch.zeros_like(grid)], -1)
    want = F.grid_sample(image[:, :, None], wide[:, None], mode, padding, align)[:, :, 0]
    close(ops.grid_sample(image, grid, mode, padding, align), want, 1e-12)


@every_shape
@every_mode
@every_padding
@both_alignments
def test_the_adjoint_is_adjoint(
    shape: tuple[int, ...], out: tuple[int, ...], mode: str, padding: str, align: bool
) -> None:
    image, grid, y = inputs(shape, out, align)
    for full in (shape, image.shape):
        there = ops.grid_sample(image, grid, mode, padding, align)
        back = ops.grid_sample_adjoint(y, grid, full, mode, padding, align)
        assert back.shape == image.shape
        assert ((there * y).sum() - (image * back).sum()).abs() <= 1e-13 * there.norm() * y.norm()


def faces(shape: tuple[int, ...], mode: str, padding: str, align: bool) -> list[tuple[Callable[..., Tensor], int]]:
    """Both functions, with which of the inputs is their first."""
    return [
        (lambda v, g: ops.grid_sample(v, g, mode, padding, align), 0),
        (lambda y, g: ops.grid_sample_adjoint(y, g, shape, mode, padding, align), 2),
    ]


@every_shape
@every_padding
@both_alignments
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_gradients_are_the_finite_differences(
    shape: tuple[int, ...], out: tuple[int, ...], mode: str, padding: str, align: bool
) -> None:
    small, few = (3, 2, 4)[-len(shape) :], (2, 1, 2)[: len(out)]
    tensors = inputs(small, few, align, 5.0)
    for f, first in faces(small, mode, padding, align):
        leaves = tensors[first][:, :2].clone().requires_grad_(), tensors[1].clone().requires_grad_()
        assert gradcheck(f, leaves, **CHECK)
        assert gradgradcheck(f, leaves, **CHECK)


@every_shape
@every_padding
def test_nearest_has_a_gradient_of_zeros_in_its_grid(
    shape: tuple[int, ...], out: tuple[int, ...], padding: str
) -> None:
    tensors = inputs(shape, out, False)
    for f, first in faces(shape, "nearest", padding, False):
        leaves = tensors[first].clone().requires_grad_(), tensors[1].clone().requires_grad_()
        value = f(*leaves)
        by_first, by_grid = torch.autograd.grad(value.square().sum(), leaves)
        assert torch.equal(by_grid, torch.zeros_like(by_grid)) and by_first.any()
        _, tangent = jvp(
            f, tuple(x.detach() for x in leaves), (torch.zeros_like(leaves[0]), torch.ones_like(leaves[1]))
        )
        assert not tangent.any()


@every_mode
@both_alignments
def test_forward_mode_and_vmap_and_functional_gradients(mode: str, align: bool) -> None:
    image, grid, y = inputs(*SHAPES[1], align)
    for (f, first), other in zip(faces(SHAPES[1][0], mode, "reflection", align), (y, image), strict=True):
        v, dv, dg = tensors = [x.clone() for x in ((image, grid, y)[first],) * 2 + (grid,)]
        dv.copy_(torch.randn_like(dv)), dg.copy_(torch.randn_like(dg))
        _, tangent = jvp(f, (v, grid), (dv, dg))
        leaves = v.clone().requires_grad_(), grid.clone().requires_grad_()
        gradients = torch.autograd.grad(f(*leaves), leaves, other)
        close((tangent * other).sum(), sum((g * d).sum() for g, d in zip(gradients, tensors[1:], strict=True)), 1e-11)
        got = grad(lambda v, g, f=f, other=other: (f(v, g) * other).sum(), argnums=(0, 1))(v, grid)
        torch.testing.assert_close(got, gradients, rtol=1e-12, atol=1e-12)
        stacked = torch.stack([v, 2 * v]), torch.stack([grid, grid.flip(1)], 2)
        got = vmap(f, in_dims=(0, 2))(*stacked)
        torch.testing.assert_close(got, torch.stack([f(v, grid), f(2 * v, grid.flip(1))]), rtol=1e-12, atol=1e-12)


@every_mode
def test_both_compile_whole_and_dynamic(mode: str) -> None:
    def run(image: Tensor, grid: Tensor, y: Tensor) -> Tensor:
        there = ops.grid_sample(image, grid, mode, "reflection", True)
        back = ops.grid_sample_adjoint(y, grid, image.shape, mode, "border")
        return there.square().sum() + back.square().sum()

    torch._dynamo.reset()
    compiled = torch.compile(run, fullgraph=True, dynamic=True, backend="aot_eager")
    for shape, out in (((5, 7), (4, 6)), ((6, 9), (3, 8))):
        leaves = [x.requires_grad_() for x in inputs(shape, out, True)]
        got, want = compiled(*leaves), run(*leaves)
        torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)
        pairs = zip(torch.autograd.grad(got, leaves), torch.autograd.grad(want, leaves), strict=True)
        assert all(torch.allclose(a, b, rtol=1e-11, atol=1e-11) for a, b in pairs)


@every_shape
@every_mode
@pytest.mark.parametrize("layout", LAYOUTS)
def test_strides_do_not_matter(shape: tuple[int, ...], out: tuple[int, ...], mode: str, layout: str) -> None:
    image, grid, y = (laid_out(x, layout) for x in inputs(shape, out, False))
    for (f, first), other in zip(faces(shape, mode, "border", False), (y, image), strict=True):
        v = (image, grid, y)[first]
        close(f(v, grid), f(v.contiguous(), grid.contiguous()), 1e-12)
        assert f(v, grid).shape == other.shape


@every_mode
@every_padding
def test_coordinates_that_are_nowhere_give_nan_and_huge_ones_zero(mode: str, padding: str) -> None:
    image, y = torch.ones(1, 1, 4, 5, requires_grad=True), torch.ones(1, 1, 2, 2)
    grid = torch.zeros(1, 2, 2, 2)
    grid[0, 0, 1, 0], grid[0, 1, 0, 1] = float("nan"), 1e30
    grid.requires_grad_()
    out = ops.grid_sample(image, grid, mode, padding)
    assert out.isnan().flatten().tolist() == [False, True, False, False]
    assert out[0, 0, 1, 0] == 0 and out[0, 0, 0, 0] == out[0, 0, 1, 1] == 1
    by_image, by_grid = torch.autograd.grad(out, (image, grid), y)
    assert by_image.sum() == 2 and not by_grid.any()
    assert ops.grid_sample_adjoint(y, grid, (4, 5), mode, padding).sum() == 2


@every_mode
def test_types_are_kept_and_nothing_is_computed_in_half_precision(mode: str) -> None:
    image, grid, y = inputs(*SHAPES[1], False)
    half = image.half()
    got = ops.grid_sample(half, grid.float(), mode)
    assert got.dtype == torch.float16
    assert torch.equal(got, ops.grid_sample(half.float(), grid.float(), mode).half())
    assert ops.grid_sample(image.float(), grid, mode).dtype == torch.float32
    assert ops.grid_sample_adjoint(y.half(), grid, (5, 7), mode).dtype == torch.float16


@every_mode
def test_an_empty_grid_gives_an_empty_image_and_an_adjoint_of_zeros(mode: str) -> None:
    image, grid = torch.ones(2, 3, 4, 5), torch.zeros(2, 0, 6, 2)
    assert ops.grid_sample(image, grid, mode).shape == (2, 3, 0, 6)
    adjoint = ops.grid_sample_adjoint(torch.ones(2, 3, 0, 6), grid, (4, 5), mode)
    assert adjoint.shape == (2, 3, 4, 5) and not adjoint.any()


IMAGE, GRID, Y = torch.zeros(2, 3, 4, 5), torch.zeros(2, 6, 7, 2), torch.zeros(2, 3, 6, 7)
ERRORS: dict[str, tuple[Callable[[], Any], str]] = {
    "unknown mode": (lambda: ops.grid_sample(IMAGE, GRID, "cubic"), "mode .*'cubic'"),
    "unknown padding": (lambda: ops.grid_sample(IMAGE, GRID, padding_mode="mirror"), "padding_mode .*'mirror'"),
    "batches": (lambda: ops.grid_sample(IMAGE[:1], GRID), r"batch .*\(1, 3, 4, 5\)"),
    "batches above one": (lambda: ops.grid_sample(IMAGE.repeat(2, 1, 1, 1), GRID), "batch"),
    "grid of channels first": (lambda: ops.grid_sample(IMAGE, GRID.movedim(-1, 1)), r"grid .*\(2, 2, 6, 7\)"),
    "image of another dimension": (lambda: ops.grid_sample(IMAGE[..., 0], GRID), r"input .*\(2, 3, 4\)"),
    "integer image": (lambda: ops.grid_sample(IMAGE.int(), GRID), "input .*int32"),
    "no grid": (lambda: ops.grid_sample(IMAGE, None), "grid .*NoneType"),  # type: ignore[arg-type]
    "no voxels": (lambda: ops.grid_sample(IMAGE[:, :, :0], GRID), r"input has no voxels.*\(0, 5\)"),
    "adjoint: unknown mode": (lambda: ops.grid_sample_adjoint(Y, GRID, (4, 5), "cubic"), "'cubic'"),
    "adjoint: batches": (lambda: ops.grid_sample_adjoint(Y[:1], GRID, (4, 5)), "y and grid .*batch"),
    "adjoint: shapes differ": (
        lambda: ops.grid_sample_adjoint(Y[..., 1:], GRID, (4, 5)),
        r"y and grid .*\(2, 3, 6, 6\)",
    ),
    "adjoint: number of sizes": (lambda: ops.grid_sample_adjoint(Y, GRID, (4, 5, 6)), r"shape .*\(4, 5, 6\)"),
    "adjoint: other channels": (lambda: ops.grid_sample_adjoint(Y, GRID, (2, 1, 4, 5)), r"shape .*\(2, 1, 4, 5\)"),
    "adjoint: a size of 0": (lambda: ops.grid_sample_adjoint(Y, GRID, (4, 0)), r"shape .*\(4, 0\)"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_does_not_fit_is_said(name: str) -> None:
    run, message = ERRORS[name]
    with pytest.raises(ValueError, match=message):
        run()


def test_the_kernel_of_bicubic_is_no_order_of_pull() -> None:
    with pytest.raises(ValueError, match="0 to 7"):
        ops.pull(IMAGE, GRID.movedim(-1, 1), 8)


@every_mode
def test_any_number_of_threads_gives_the_same_bits(mode: str) -> None:
    shape = (41, 42, 43)
    image, grid = torch.randn(1, 1, *shape), 2.2 * torch.rand(1, *shape, 3) - 1.1
    results = []
    for threads in (1, 2, 3, 8):
        torch.set_num_threads(threads)
        there = ops.grid_sample(image, grid, mode, "reflection")
        results.append((there, ops.grid_sample_adjoint(image, grid, shape, mode, "reflection")))
    assert all(torch.equal(a, b) for result in results[1:] for a, b in zip(result, results[0], strict=True))
