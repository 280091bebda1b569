"""The names that others build on, with their arguments, their order and their defaults."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from regnet import ops

SAMPLED = "order=1, bound='dct2', extrapolate=True"
RESIZED = "anchor='edges', order=1, bound='dct2', prefilter=True"
TORCH = "mode='bilinear', padding_mode='zeros', align_corners=False"
NAMES = {
    "pull": f"coeff, coords, {SAMPLED}",
    "push": f"value, coords, shape, {SAMPLED}",
    "count": f"coords, shape, {SAMPLED}",
    "grad": f"coeff, coords, {SAMPLED}",
    "hess": "coeff, coords, order=3, bound='dct2', extrapolate=True",  # an order that bends
    "prefilter": "image, order=3, bound='dct2'",
    "warp": f"image, flow, {SAMPLED}, matrix=None, prefilter=True",
    "warp_labels": "labels, flow, mode='linear', matrix=None, background=0",
    "identity": "shape, *, dtype=torch.float32, device=None",
    "compose": "outer, inner, order=1, bound='dct2'",
    "integrate": "velocity, steps=7, order=1, bound='dct2'",
    "invert": "flow, iterations=50, tolerance=0.001, order=1, bound='replicate'",
    "jacobian": "flow",
    "jacobian_determinant": "flow",
    "resize": f"image, shape=None, factor=None, {RESIZED}",
    "resize_flow": f"flow, shape=None, factor=None, {RESIZED}",
    "restrict": f"image, shape, {RESIZED}, normalize=False",
    "ffd": "control, shape, spacing",
    "box_sum": "image, window",
    "Spline": "samples, order=3, bound='dct2', prefilter=True",
    "Spline.value": "self, coords",
    "Spline.gradient": "self, coords",
    "Spline.hessian": "self, coords",
    "Spline.value_and_gradient": "self, coords",
    "SamplingOperator": f"coords, shape, {SAMPLED}, prefilter=False, deriv=0",
    "SamplingOperator.__call__": "self, x",
    "SamplingOperator.__matmul__": "self, x",
    "SamplingOperator.dense": "self",
    "grid_sample": f"input, grid, {TORCH}",
    "grid_sample_adjoint": f"y, grid, shape, {TORCH}",
}


def named(path: str) -> Any:
    found: Any = ops
    for part in path.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_takes_these_arguments(name: str) -> None:
    signature = inspect.signature(named(name))
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    got = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    assert got == f"({NAMES[name]})"


def test_these_are_all_names_and_each_says_what_it_is() -> None:
    assert sorted(ops.__all__) == sorted(name for name in NAMES if "." not in name)
    assert all(named(name).__doc__ for name in NAMES if "__" not in name)
