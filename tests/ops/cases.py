"""Problems to try the operators on, drawn with a fixed seed or every (order, bound, dimension) once; how to compare."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.reference import BOUNDS, ORDERS, array

LAYOUTS = ("contiguous", "channels_last", "reversed", "strided", "expanded")
EXTRAPOLATE: tuple[bool | str, ...] = (True, False, "center", "edge")
DTYPES = (torch.float32, torch.float64)
CHECK = {"eps": 1e-6, "atol": 1e-8, "rtol": 1e-6}  # of gradcheck, points off the knots


def laid_out(x: Tensor, layout: str) -> Tensor:
    """The same values (``expanded``: those of the first batch and channel entry) with other strides."""
    if layout == "channels_last":
        return x.movedim(1, -1).contiguous().movedim(-1, 1)
    if layout == "reversed":  # the first axis runs fastest
        axes = list(range(x.ndim))[::-1]
        return x.permute(axes).contiguous().permute(axes)
    if layout == "strided":
        room = x.new_full([2 * n + 1 for n in x.shape], float("nan"))
        view = room[tuple(slice(1, 1 + 2 * n, 2) for n in x.shape)]
        return view.copy_(x)
    if layout == "expanded":
        return x[:1, :1].expand(x.shape)
    return x.contiguous()


def f64(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def constant(vector: Sequence[float], shape: Sequence[int]) -> Tensor:
    """The same vector at every voxel, ``(1, D, *shape)``."""
    return f64(vector).reshape(1, -1, *[1] * len(shape)).expand(1, -1, *shape)


def close(got: Tensor, want: Any, tolerance: float = 1e-11) -> None:
    """Up to ``tolerance`` at every place."""
    np.testing.assert_allclose(got.detach().numpy(), array(want), rtol=0, atol=tolerance)


def off_knots(random: np.random.Generator, size: Sequence[int], low: float, high: float) -> Tensor:
    """Coordinates whose distance to every integer and half-integer is at least 0.1."""
    whole = np.floor(random.uniform(low, high, size))
    return torch.from_numpy(whole + random.uniform(0.1, 0.4, size) + random.choice([0.0, 0.5], size))


@dataclass(frozen=True)
class Case:
    """One sampling problem. ``coords`` are off the knots, some far outside, some at the edges of the view."""

    shape: tuple[int, ...]
    out: tuple[int, ...]
    order: int | tuple[int, ...]
    bound: str | tuple[str, ...]
    extrapolate: bool | str = True
    batch: int = 1
    channels: int = 1
    coeff_layout: str = "contiguous"
    coords_layout: str = "contiguous"
    coeff_dtype: torch.dtype = torch.float64
    coords_dtype: torch.dtype = torch.float64
    seed: int = 0

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def orders(self) -> tuple[int, ...]:
        return self.order if isinstance(self.order, tuple) else (self.order,) * self.ndim

    @property
    def options(self) -> tuple[int | list[int], str | list[str], bool | str]:
        """order, bound, extrapolate as the operators take them."""
        order = list(self.order) if isinstance(self.order, tuple) else self.order
        bound = list(self.bound) if isinstance(self.bound, tuple) else self.bound
        return order, bound, self.extrapolate

    def tolerance(self, dtype: torch.dtype) -> float:
        """The error allowed in a result of this type."""
        return 1e-12 if dtype == torch.float64 and torch.float64 in (self.coeff_dtype, self.coords_dtype) else 1e-5

    def normal(self, *size: int, dtype: torch.dtype, layout: str = "contiguous", stream: int = 0) -> Tensor:
        random = torch.Generator().manual_seed(1000 * self.seed + stream)
        return laid_out(torch.randn(size, generator=random, dtype=torch.float64).to(dtype), layout)

    def coeff(self) -> Tensor:
        return self.normal(self.batch, self.channels, *self.shape, dtype=self.coeff_dtype, layout=self.coeff_layout)

    def value(self, *derivatives: int, stream: int = 1) -> Tensor:
        """``(N, C, *derivatives, *out)`` of the coefficients' type and layout: something to push, or a cotangent."""
        size = (self.batch, self.channels, *derivatives, *self.out)
        return self.normal(*size, dtype=self.coeff_dtype, layout=self.coeff_layout, stream=stream)

    def coords(self) -> Tensor:
        random = np.random.default_rng(self.seed)
        axes = []
        for n in self.shape:
            size = (self.batch, *self.out)
            reach = 1 + random.integers(2) * (n + 5)
            x = off_knots(random, size, -reach, n - 1 + reach)
            limit = torch.from_numpy(random.choice([-0.54, -0.04, n - 0.96, n - 0.46], size))
            axes.append(torch.where(torch.from_numpy(random.random(size) < 0.2), limit, x))
        return laid_out(torch.stack(axes, 1).to(self.coords_dtype), self.coords_layout)

    def __str__(self) -> str:
        def short(values: object) -> str:
            return "".join(map(str, values)) if isinstance(values, tuple) else str(values)

        what = f"{self.ndim}d-o{short(self.order)}-{'+'.join(np.atleast_1d(self.bound))}-{self.extrapolate}"
        types = f"{str(self.coeff_dtype)[-2:]}x{str(self.coords_dtype)[-2:]}"
        return f"{what}-{self.batch}x{self.channels}-{self.coeff_layout}-{self.coords_layout}-{types}"


def smallest() -> list[Case]:
    """Every (order, bound, dimension) once."""
    shape, out = (3, 4, 2), (3, 2, 2)
    return [
        Case(shape[:ndim], out[:ndim], order, bound, seed=10 * order + ndim)
        for ndim, order, bound in itertools.product((1, 2, 3), ORDERS, BOUNDS)
    ]


def roomy() -> list[Case]:
    """Volumes large enough that most stencils, at any padding, lie inside: the fast path, beside the border's."""
    shape, out = (12, 11, 14), (2, 3, 9)
    return [
        Case(shape[-ndim:], out[-ndim:], order, bound, coeff_dtype=dtype, coords_dtype=dtype, channels=2, seed=order)
        for (ndim, order), dtype in itertools.product(itertools.product((1, 2, 3), ORDERS), DTYPES)
        for bound in (BOUNDS[(order + ndim) % 7],)
    ]


def drawn(count: int, seed: int) -> list[Case]:
    """Random cases over everything the operators accept; a third mixes orders or bounds per axis."""
    random = np.random.default_rng(seed)

    def one_or_per_axis(choices: Sequence[int | str], ndim: int) -> int | str | tuple[int | str, ...]:
        picked = tuple(choices[i] for i in random.integers(len(choices), size=ndim))
        return picked if random.random() < 1 / 3 else picked[0]

    cases = []
    for k in range(count):
        ndim = int(random.integers(1, 4))
        cases.append(
            Case(
                shape=tuple(map(int, random.integers(1, (13, 8, 6)[ndim - 1], size=ndim))),
                out=tuple(map(int, random.integers(1, (9, 5, 4)[ndim - 1], size=ndim))),
                order=one_or_per_axis(ORDERS, ndim),  # type: ignore[arg-type]
                bound=one_or_per_axis(BOUNDS, ndim),  # type: ignore[arg-type]
                extrapolate=EXTRAPOLATE[random.integers(4)],
                batch=int(random.integers(1, 3)),
                channels=int(random.choice([1, 3])),
                coeff_layout=LAYOUTS[random.integers(5)],
                coords_layout=LAYOUTS[random.integers(5)],
                coeff_dtype=DTYPES[random.integers(2)],
                coords_dtype=DTYPES[random.integers(2)],
                seed=k,
            )
        )
    return cases


def product() -> Iterator[Case]:
    """The full product: order × bound × dimension × extrapolation × batch × channels × layout × types."""
    shape, out = (5, 3, 4), (4, 2, 3)
    everything = itertools.product(
        (1, 2, 3), ORDERS, BOUNDS, EXTRAPOLATE, (1, 2), (1, 3), LAYOUTS, itertools.product(DTYPES, DTYPES)
    )
    for k, (ndim, order, bound, extrapolate, batch, channels, layout, (coeff_dtype, coords_dtype)) in enumerate(
        everything
    ):
        yield Case(
            shape[:ndim],
            out[:ndim],
            order,
            bound,
            extrapolate,
            batch,
            channels,
            layout,
            layout,
            coeff_dtype,
            coords_dtype,
            k,
        )
    for k, (ndim, seed) in enumerate(itertools.product((2, 3), range(100))):
        random = np.random.default_rng(seed)
        orders = tuple(map(int, random.permutation(8)[:ndim]))
        bounds = tuple(map(str, random.permutation(BOUNDS)[:ndim]))
        yield Case(shape[:ndim], out[:ndim], orders, bounds, EXTRAPOLATE[seed % 4], 2, 2, seed=k)
