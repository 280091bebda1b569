"""An image as a function of position."""

from torch import Tensor

from regnet.ops import _check
from regnet.ops.options import Bound, Order, bound_codes, order_codes
from regnet.ops.prefilter import prefilter as _prefilter
from regnet.ops.sampling import grad, hess, pull


class Spline:
    """The spline through an image's samples: its values and derivatives wherever they are asked for.

    It is defined everywhere, by its bound. Everything is differentiable in the samples, through the filter, and in the
    coordinates: ``Spline(image).hessian(coords).square().sum().backward()`` gives the gradient of a bending penalty.

    Args:
        samples: ``(N, C, *in)``.
        order: spline order 0 to 7, one or one per axis. Order 0 has values only; the others have every derivative
            (almost everywhere, where the order is low).
        bound: how the image continues outside its grid, one or one per axis, as in :func:`regnet.ops.pull`.
        prefilter: whether ``samples`` are samples (True) or already coefficients.

    Attributes:
        coeff: ``(N, C, *in)`` coefficients, filtered once, here; in float32 at least if they were filtered.

    Raises:
        ValueError: not an image, or an unknown order or bound.

    Source:
        Unser, IEEE Signal Processing Magazine 1999.
    """

    def __init__(self, samples: Tensor, order: Order = 3, bound: Bound = "dct2", prefilter: bool = True) -> None:
        ndim = _check.image("samples", samples)
        _, dtype = _check.together(samples=samples)
        order_codes(order, ndim), bound_codes(bound, ndim)
        self.order, self.bound, self._dtype = order, bound, samples.dtype
        self.coeff = _prefilter(samples.to(dtype), order, bound) if prefilter else samples

    def value(self, coords: Tensor) -> Tensor:
        """Values at ``coords`` ``(N, D, *out)``, in voxels: ``(N, C, *out)``, of the type of the samples."""
        return pull(self.coeff, coords, self.order, self.bound).to(self._dtype)

    def gradient(self, coords: Tensor) -> Tensor:
        """First derivatives at ``coords`` ``(N, D, *out)``: ``(N, C, D, *out)``, per voxel.

        Raises:
            ValueError: the order is 0.
        """
        return grad(self.coeff, coords, self.order, self.bound).to(self._dtype)

    def hessian(self, coords: Tensor) -> Tensor:
        """Second derivatives at ``coords`` ``(N, D, *out)``: ``(N, C, D, D, *out)``, per voxel squared.

        Raises:
            ValueError: the order is 0.
        """
        return hess(self.coeff, coords, self.order, self.bound).to(self._dtype)

    def value_and_gradient(self, coords: Tensor) -> tuple[Tensor, Tensor]:
        """``(value(coords), gradient(coords))``, as two look-ups."""
        return self.value(coords), self.gradient(coords)
