"""The oracle itself, against scipy where scipy is right, closed forms, and published numbers."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy.interpolate import BSpline
from scipy.ndimage import map_coordinates, spline_filter1d

from tests import reference

SCIPY_MODE = {"dct1": "mirror", "dct2": "reflect", "dft": "grid-wrap", "zero": "grid-constant"}


@pytest.mark.parametrize("order", reference.ORDERS)
def test_the_spline_and_all_its_derivatives_are_those_of_de_boor(order: int) -> None:
    knots = np.arange(order + 2) - (order + 1) / 2
    x = np.random.default_rng(order).uniform(knots[0] - 1, knots[-1] + 1, 200)
    element = BSpline.basis_element(knots, extrapolate=False)
    for degree in range(order + 1):
        want = np.nan_to_num(element.derivative(degree)(x) if degree else element(x))
        np.testing.assert_allclose(reference.bspline(order, x, degree), want, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("order", "values"),
    [
        (2, "3/4 1/8"),
        (3, "2/3 1/6"),
        (4, "115/192 19/96 1/384"),
        (5, "11/20 13/60 1/120"),
        (6, "5887/11520 10543/46080 361/23040 1/46080"),
        (7, "151/315 397/1680 1/42 1/5040"),
    ],
)
def test_the_spline_at_integers_is_the_known_fraction(order: int, values: str) -> None:
    want = [float(Fraction(v)) for v in values.split()]
    for sign in (1, -1):
        np.testing.assert_allclose(reference.bspline(order, sign * np.arange(len(want))), want, rtol=1e-14)


@pytest.mark.parametrize("order", range(1, 8))
def test_derivatives_are_differences_of_lower_splines_also_at_the_knots(order: int) -> None:
    x = np.arange(-20, 21) / 4
    lower = reference.bspline(order - 1, x + 0.5) - reference.bspline(order - 1, x - 0.5)
    np.testing.assert_allclose(reference.bspline(order, x, 1), lower, rtol=0, atol=1e-14)
    if order > 1:
        second = [reference.bspline(order - 2, x + k) for k in (1, 0, -1)]
        np.testing.assert_allclose(reference.bspline(order, x, 2), second[0] - 2 * second[1] + second[2], atol=1e-14)


@pytest.mark.parametrize(
    ("bound", "pattern"),
    [
        ("zero", "..|abcd|.."),
        ("replicate", "aa|abcd|dd"),
        ("dft", "cd|abcd|ab"),
        ("dct1", "cb|abcd|cb"),
        ("dct2", "ba|abcd|dc"),
        ("dst2", "BA|abcd|DC"),
        ("dst1", "A.|abcd|.D"),
    ],
)
def test_bounds_continue_as_their_pattern_says(bound: str, pattern: str) -> None:
    for i, letter in enumerate(pattern.replace("|", ""), start=-2):
        index, sign = reference.fold(bound, i, 4)
        assert letter == (".", "abcd"[index], "ABCD"[index])[sign]


@pytest.mark.parametrize("bound", ["dft", "dct1", "dct2", "dst1", "dst2"])
@pytest.mark.parametrize("n", range(1, 7))
def test_bounds_are_periodic_and_symmetric(bound: str, n: int) -> None:
    period = {"dft": n, "dct1": max(2 * (n - 1), 1), "dst1": 2 * (n + 1)}.get(bound, 2 * n)
    centre = {"dct1": 0, "dst1": -2}.get(bound, -1)  # i mirrors to centre - i
    for i in range(-4 * n, 4 * n):
        index, sign = reference.fold(bound, i, n)
        assert 0 <= index < n
        assert reference.fold(bound, i + period, n) == (index, sign)
        if bound != "dft":
            mirrored = -sign if bound.startswith("dst") else sign
            assert reference.fold(bound, centre - i, n) == (index, mirrored)


@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.parametrize("order", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("bound", SCIPY_MODE)
def test_pull_is_scipy_map_coordinates_without_its_filter(ndim: int, order: int, bound: str) -> None:
    random = np.random.default_rng(0)
    coeff = random.standard_normal((5, 4, 3)[:ndim])
    coords = random.uniform(-3.9, 7.9, (ndim, 40))
    want = map_coordinates(coeff, coords, order=order, mode=SCIPY_MODE[bound], prefilter=False)
    got = reference.pull(coeff[None, None], coords[None], order, bound)[0, 0]
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-13)


@pytest.mark.parametrize("order", [2, 3, 4, 5])
@pytest.mark.parametrize("bound", ["dct1", "dct2", "dft"])
def test_prefilter_of_a_long_line_is_scipy_spline_filter(order: int, bound: str) -> None:
    line = np.random.default_rng(1).standard_normal(100)
    want = spline_filter1d(line, order, mode=SCIPY_MODE[bound])
    np.testing.assert_allclose(reference.prefilter(line[None, None], order, bound)[0, 0], want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("bound", reference.BOUNDS)
@pytest.mark.parametrize("order", range(2, 8))
def test_prefiltered_samples_are_interpolated(bound: str, order: int) -> None:
    image = np.random.default_rng(2).standard_normal((1, 2, 1, 5, 8))
    coords = reference.identity(image.shape[2:])
    got = reference.pull(reference.prefilter(image, order, bound), coords, order, bound)
    np.testing.assert_allclose(got, image, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("bound", "values"),
    [("dct1", (0.7042, -1.538, -2.12)), ("dct2", (0.70525, -1.41, -1.65)), ("dft", (0.73675, -1.5075, -2.55))],
)
def test_value_and_derivatives_of_case_c11(bound: str, values: tuple[float, ...]) -> None:
    coeff = reference.prefilter([[[0, 1, 0, 2]]], 3, bound)
    got = [reference.sample(coeff, [[[1.3]]], 3, bound, degree=k).item() for k in range(3)]
    np.testing.assert_allclose(got, values, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("order", "out", "coords_gradient"),
    [
        (1, (0.8, 12.2, 22.60625), ((3, 0.35), (21.5, 4.4), (40.875, 9.15))),
        (
            3,
            (1.036882, 12.416667, 21.683659),
            ((2.327474, 0.392773), (21.494792, 4.15), (28.910156, 8.714063)),
        ),
    ],
)
def test_gradients_of_published_fault_b1(order: int, out: tuple[float], coords_gradient: tuple[tuple[float]]) -> None:
    i, j = np.meshgrid(np.arange(4), np.arange(5), indexing="ij")
    volume = ((5 * i + j) ** 2 / 10)[None, None]
    coords = np.array([(0.25, 0.5), (1.5, 3.25), (2.75, 1.125)]).T[None, :, :, None]
    np.testing.assert_allclose(reference.pull(volume, coords, order).ravel(), out, rtol=0, atol=1e-6)
    got = reference.grad(volume, coords, order)[0, 0, :, :, 0].T * [[1], [2], [3]]
    np.testing.assert_allclose(got, coords_gradient, rtol=0, atol=1e-6)


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("extrapolate", [True, "center", "edge"])
def test_scatter_is_the_adjoint_of_sample(degree: int, extrapolate: bool | str) -> None:
    random = np.random.default_rng(3)
    coeff, coords = random.standard_normal((2, 3, 4, 5)), random.uniform(-2, 6, (2, 2, 7, 3))
    sampled = reference.sample(coeff, coords, [2, 3], ["dst1", "dct1"], extrapolate, degree)
    value = random.standard_normal(sampled.shape)
    scattered = reference.scatter(value, coords, (4, 5), [2, 3], ["dst1", "dct1"], extrapolate, degree)
    np.testing.assert_allclose((sampled * value).sum(), (coeff * scattered).sum(), rtol=1e-12)


def test_linear_pull_is_torch_grid_sample() -> None:
    random = torch.Generator().manual_seed(4)
    image = torch.randn(2, 3, 4, 5, 6, dtype=torch.float64, generator=random)
    grid = torch.rand(2, 3, 2, 4, 3, dtype=torch.float64, generator=random) * 3 - 1.5
    sizes = torch.tensor([6.0, 5.0, 4.0], dtype=torch.float64)
    coords = (((grid + 1) * sizes - 1) / 2).flip(-1).movedim(-1, 1)
    for padding, bound in {"zeros": "zero", "border": "replicate", "reflection": "dct2"}.items():
        want = torch.nn.functional.grid_sample(image, grid, padding_mode=padding, align_corners=False)
        np.testing.assert_allclose(reference.pull(image, coords, 1, bound), want.numpy(), rtol=0, atol=1e-13)


def test_views_end_a_twentieth_of_a_voxel_beyond_centres_or_edges() -> None:
    x = np.array([[-0.56, -0.54, -0.06, -0.04, 2.04, 2.06, 2.54, 2.56]])
    assert reference.inside(x, (3,), True).all()
    assert reference.inside(x, (3,), False).tolist() == [False, False, False, True, True, False, False, False]
    assert reference.inside(x, (3,), "center").tolist() == reference.inside(x, (3,), False).tolist()
    assert reference.inside(x, (3,), "edge").tolist() == [False, True, True, True, True, True, True, False]


def test_non_finite_coordinates_give_nan_or_nothing() -> None:
    coords = np.array([[[np.nan, np.inf, -np.inf, 2.0**30, 1.0]]])
    np.testing.assert_equal(reference.pull([[[1.0, 2.0]]], coords)[0, 0], [np.nan, 0, 0, 0, 2])
    value = np.array([[[np.nan, np.nan, np.nan, 1, 1]]])
    np.testing.assert_equal(reference.push(value, coords, (2,))[0, 0], [0, 1])


def test_the_error_measure_sees_missing_and_wrong_values() -> None:
    assert reference.error([1.0, np.nan], [1.0, np.nan], [2.0, 1.0]) == 0
    assert reference.error([1.5], [1.0], [2.0]) == 0.25
    with pytest.raises(AssertionError, match="NaN"):
        reference.error([np.nan], [1.0], [1.0])
    with pytest.raises(AssertionError, match="nothing contributes"):
        reference.error([1.0], [0.0], [0.0])
