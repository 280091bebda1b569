"""Sampling as a linear operator on images, and its adjoint."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regnet.ops import _check, _families
from regnet.ops._how import How
from regnet.ops.options import BOUNDS, Bound, Extrapolate, Order, derivable
from regnet.ops.prefilter import spline_filter
from regnet.ops.sampling import ready


class SamplingOperator:
    """Sampling at given coordinates as a matrix that is never made: ``A @ x`` samples, ``A.T @ y`` is the adjoint.

    Built once, it is applied to any number of images. ``A(x)`` and ``A.T(y)`` are other spellings. The adjoint is
    exact and needs no autograd; both are differentiable in what they are applied to and in the coordinates.

    Args:
        coords: ``(N, D, *out)`` where to sample, in voxels of the image; channel ``d`` lies along spatial axis ``d``.
        shape: D sizes of the image.
        order, bound, extrapolate: as :func:`regnet.ops.pull`.
        prefilter: whether ``x`` holds samples (True; the adjoint then ends with the filter's adjoint) or spline
            coefficients.
        deriv: what is sampled: 0 the values, as :func:`regnet.ops.pull`; 1 the first, 2 the second derivatives, as
            :func:`regnet.ops.grad` and :func:`regnet.ops.hess`.

    Raises:
        ValueError: shapes or words that do not fit, or derivatives of order 0.
    """

    def __init__(
        self,
        coords: Tensor,
        shape: Sequence[int],
        order: Order = 1,
        bound: Bound = "dct2",
        extrapolate: Extrapolate = True,
        prefilter: bool = False,
        deriv: int = 0,
    ) -> None:
        ndim = _check.field("coords", coords)
        self.coords, self.shape = coords, tuple(_check.shape("shape", shape, ndim))
        _check.voxels("the image", self.shape, coords)
        if deriv not in (0, 1, 2):
            raise ValueError(f"deriv must be 0 (values), 1 or 2, got {deriv!r}")
        self.deriv = int(deriv)
        self._how = How.of(False, ndim, order, bound, extrapolate)
        derivable(self._how.order, self.deriv)
        self._filters = prefilter

    @property
    def T(self) -> "Adjoint":
        """The adjoint, whose own ``T`` is this operator."""
        return Adjoint(self)

    def __call__(self, x: Tensor) -> Tensor:
        """Sample.

        Args:
            x: ``(N, C, *shape)``. A batch of one, here or in ``coords``, is broadcast.

        Returns:
            ``(N, C, *out)``, with ``deriv`` axes of size D before ``out``; of the type of ``x``, computed in float64
            if it or ``coords`` is, else in float32.
        """
        _check.image("x", x, len(self.shape))
        if tuple(x.shape[2:]) != self.shape:
            raise ValueError(f"x must be (N, C, *{self.shape}), the shape that the operator has, got {tuple(x.shape)}")
        batch, dtype = _check.together(x=x, coords=self.coords)
        coeff = x.to(dtype)
        if self._filters:
            coeff = spline_filter(coeff, self._how.order, self._how.bound, False)
        coords = ready(self.coords, batch, dtype)
        return _families.sample(ready(coeff, batch, dtype), coords, None, self.deriv, self._how).to(x.dtype)

    def __matmul__(self, x: Tensor) -> Tensor:
        _refuse_products(x)
        return self(x)

    def __repr__(self) -> str:
        how = f"order={self._how.order}, bound={[BOUNDS[b] for b in self._how.bound]}, deriv={self.deriv}"
        return f"SamplingOperator({tuple(self.coords.shape)} samples of {self.shape}, {how}, prefilter={self._filters})"

    def dense(self) -> Tensor:
        """The matrix, ``(N, D**deriv * prod(out), prod(shape))``: for tests, since it is as large as it looks."""
        _, dtype = _check.together(coords=self.coords)
        units = torch.eye(torch.Size(self.shape).numel(), dtype=dtype, device=self.coords.device)
        return self(units.reshape(1, -1, *self.shape)).flatten(2).mT


class Adjoint:
    """The adjoint of a :class:`SamplingOperator`: what it took from a voxel, this adds to it."""

    def __init__(self, operator: SamplingOperator) -> None:
        self.T = operator

    def __call__(self, y: Tensor) -> Tensor:
        """Scatter.

        Args:
            y: ``(N, C, *out)``, with ``deriv`` axes of size D before ``out``: what the operator gives.

        Returns:
            ``(N, C, *shape)``, of the type of ``y``. The same bits for any number of threads.
        """
        a = self.T
        wanted = (*[len(a.shape)] * a.deriv, *a.coords.shape[2:])
        _check.floating("y", y)
        if tuple(y.shape[2:]) != wanted:
            raise ValueError(f"y must be (N, C, *{wanted}), as what the operator gives, got {tuple(y.shape)}")
        batch, dtype = _check.together(y=y, coords=a.coords)
        coords = ready(a.coords, batch, dtype)
        out = _families.scatter(ready(y, batch, dtype), coords, None, a.shape, a.deriv, a._how)
        if a._filters:
            out = spline_filter(out, a._how.order, a._how.bound, True)
        return out.to(y.dtype)

    def __matmul__(self, y: Tensor) -> Tensor:
        _refuse_products(y)
        return self(y)

    def __repr__(self) -> str:
        return f"{self.T!r}.T"

    def dense(self) -> Tensor:
        """The transposed matrix, ``(N, prod(shape), D**deriv * prod(out))``."""
        return self.T.dense().mT


def _refuse_products(x: object) -> None:
    if isinstance(x, (SamplingOperator, Adjoint)):
        raise ValueError("products of operators are not made; apply one after the other: A.T @ (A @ x)")
