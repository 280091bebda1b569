"""The words of the operators: orders, bounds and extrapolation, checked once at the public edge."""

from collections.abc import Sequence

from regnet.ops import _check

# The position in this tuple is the number that the compiled core knows (csrc/include/regnet/bound.hpp).
BOUNDS = ("zero", "replicate", "dct1", "dct2", "dst1", "dst2", "dft")
_ALIASES = {
    "zeros": "zero",
    "nearest": "replicate",
    "border": "replicate",
    "mirror": "dct1",
    "reflect": "dct2",
    "neumann": "dct2",
    "antimirror": "dst1",
    "antireflect": "dst2",
    "dirichlet": "dst2",
    "wrap": "dft",
    "circular": "dft",
}
_EXTRAPOLATE = {"center": 0, False: 0, True: 1, "edge": 2}
MAX_ORDER = 7
KEYS = MAX_ORDER + 1  # the core's name for torch's bicubic kernel, in place of an order; not for the public edge

Order = int | Sequence[int]
Bound = str | Sequence[str]
Extrapolate = bool | str


def order_codes(order: Order, ndim: int) -> list[int]:
    """One spline order per axis.

    Raises:
        ValueError: an order outside 0..7, or neither one nor ``ndim`` of them.
    """
    orders = _check.per_axis(order, ndim, int)
    if not orders or not all(0 <= o <= MAX_ORDER for o in orders):
        raise ValueError(
            f"order must be an integer from 0 to {MAX_ORDER}, or {ndim} of them (one per axis), got {order!r}"
        )
    return orders


def derivable(orders: Sequence[int], degree: int) -> None:
    """
    Raises:
        ValueError: derivatives of order 0.
    """
    if degree and 0 in orders:
        raise ValueError(f"a spline of order 0 has no derivatives; use order 1 or more on every axis, got {orders!r}")


def bound_codes(bound: Bound, ndim: int) -> list[int]:
    """One bound per axis, as the numbers of the compiled core.

    Raises:
        ValueError: an unknown name, or neither one nor ``ndim`` of them.
    """
    resolved = [_ALIASES.get(name, name) for name in _check.per_axis(bound, ndim, str)]
    if not resolved or not all(name in BOUNDS for name in resolved):
        known = ", ".join((*BOUNDS, *_ALIASES))
        raise ValueError(f"bound must be one name, or {ndim} (one per axis), of {known}; got {bound!r}")
    return [BOUNDS.index(name) for name in resolved]


def extrapolate_code(extrapolate: Extrapolate) -> int:
    """What counts as in view, as the number of the compiled core.

    Raises:
        ValueError: none of True, False, "center", "edge".
    """
    if not isinstance(extrapolate, (bool, str)) or extrapolate not in _EXTRAPOLATE:
        raise ValueError(f'extrapolate must be True, False, "center" or "edge", got {extrapolate!r}')
    return _EXTRAPOLATE[extrapolate]
