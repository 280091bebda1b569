"""How others do what the operators do.  Each function makes what may be made beforehand and returns the call.

Tensors are in regnet's conventions.  A peer is imported by its own function only, so ``ImportError`` from that
function means that the peer is not installed; the extra ``bench`` of regnet installs them all.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regnet import ops

# --- torch --------------------------------------------------------------------------------------------------------


def normalised(coords: Tensor) -> Tensor:
    """Coordinates as ``grid_sample`` wants them: (N, *out, D), last axis first, in [-1, 1]."""
    scaled = [2 * coords[:, d] / (n - 1) - 1 for d, n in reversed(list(enumerate(coords.shape[2:])))]
    return torch.stack(scaled, -1)


def grid_sample(image: Tensor, grid: Tensor, mode: str = "bilinear") -> Callable[[], Tensor]:
    """Torch's pull of order 1, on a :func:`normalised` grid that is ready made."""
    return lambda: F.grid_sample(image, grid, mode=mode, padding_mode="border", align_corners=True)


def transposed_convolution(
    control: Tensor, shape: Sequence[int], spacing: int, separable: bool
) -> Callable[[], Tensor]:
    """A free-form deformation as an upsampling with cubic B-spline weights, dense or one axis after the other."""
    steps = torch.arange(1 - 2 * spacing, 2 * spacing) / spacing
    weights = ops.pull(F.pad(torch.ones(1, 1, 1), (2, 2)), steps[None, None] + 2, 3)[0, 0]
    first = 3 * spacing - 1  # where control point 1, which stands at voxel 0, has its peak in the whole output

    def dense() -> Tensor:
        kernel = weights[:, None, None] * weights[:, None] * weights
        whole = F.conv_transpose3d(control.transpose(0, 1), kernel[None, None], stride=spacing)
        for axis, n in enumerate(shape):
            whole = whole.narrow(2 + axis, first, n)
        return whole.transpose(0, 1)

    def axis_by_axis() -> Tensor:
        whole = control.transpose(0, 1)
        for axis in (2, 1, 0):  # the last axis first, while the volume is small
            sizes = [1, 1, 1]
            sizes[axis] = len(weights)
            stride = [1, 1, 1]
            stride[axis] = spacing
            whole = F.conv_transpose3d(whole, weights.reshape(1, 1, *sizes), stride=stride)
            whole = whole.narrow(2 + axis, first, shape[axis])
        return whole.transpose(0, 1)

    return axis_by_axis if separable else dense


def one_hot_labels(labels: Tensor, grid: Tensor) -> Callable[[], Tensor]:
    """Labels from 0 on, linearly: one volume a label, all sampled, and the largest share wins."""

    def call() -> Tensor:
        shares = F.one_hot(labels[:, 0].long()).movedim(-1, 1).float()
        return grid_sample(shares, grid)().argmax(1, keepdim=True).to(labels.dtype)

    return call


def nearest_labels(labels: Tensor, grid: Tensor) -> Callable[[], Tensor]:
    """Labels by the nearest voxel, through float32."""
    return lambda: grid_sample(labels.float(), grid, "nearest")().to(labels.dtype)


# --- torch-interpol -----------------------------------------------------------------------------------------------


def interpol_pull(coeff: Tensor, grid: Tensor, order: int) -> Callable[[], Tensor]:
    """Pull on coordinates ``(N, *out, D)``, still in voxels."""
    interpol = _interpol()
    return lambda: interpol.grid_pull(coeff, grid, interpolation=order, bound="dct2", extrapolate=True)


def interpol_prefilter(image: Tensor, order: int) -> Callable[[], Tensor]:
    """Spline coefficients, of all axes."""
    interpol = _interpol()
    return lambda: interpol.spline_coeff_nd(image, interpolation=order, bound="dct2", dim=image.ndim - 2)


def _interpol() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.jit.script is deprecated
        import interpol
    return interpol


# --- scipy and SimpleITK: one channel -----------------------------------------------------------------------------


def scipy_prefilter(image: Tensor, order: int) -> Callable[[], Any]:
    """Spline coefficients; scipy has one thread."""
    from scipy import ndimage

    samples = image[0, 0].numpy()
    return lambda: ndimage.spline_filter(samples, order, output=samples.dtype, mode="reflect")


def simpleitk_warp(image: Tensor, flow: Tensor, order: int) -> Callable[[], Any]:
    """Resample through a displacement field, at order 3 with the prefilter as part of it."""
    import SimpleITK as sitk

    moving = sitk.GetImageFromArray(image[0, 0].numpy())
    vectors = flow[0].flip(0).movedim(0, -1).double().numpy()  # ITK names the fastest axis first
    resampler = sitk.ResampleImageFilter()
    resampler.SetReferenceImage(moving)
    resampler.SetTransform(sitk.DisplacementFieldTransform(sitk.GetImageFromArray(vectors, isVector=True)))
    resampler.SetInterpolator({1: sitk.sitkLinear, 3: sitk.sitkBSpline3}[order])

    def call() -> Any:
        resampler.SetNumberOfThreads(torch.get_num_threads())
        return resampler.Execute(moving)

    return call


# --- voxelmorph and monai -----------------------------------------------------------------------------------------


def voxelmorph_integrate(velocity: Tensor, steps: int) -> Callable[[], Tensor]:
    """Scaling and squaring, the identity ready made."""
    from voxelmorph.nn.functional import integrate_vec

    identity = ops.identity(velocity.shape[2:], device=velocity.device)[0]
    return lambda: integrate_vec(velocity, steps, meshgrid=identity)


def voxelmorph_warp(image: Tensor, flow: Tensor) -> Callable[[], Tensor]:
    """Warp of order 1."""
    from voxelmorph.nn.functional import spatial_transform

    return lambda: spatial_transform(image, flow)


def monai_integrate(velocity: Tensor, steps: int) -> Callable[[], Tensor]:
    """Scaling and squaring of the wheel on PyPI, which has no compiled sampler and calls ``grid_sample``."""
    block = _monai("DVF2DDF", num_steps=steps, padding_mode="border")
    return lambda: block(velocity)


def monai_warp(image: Tensor, flow: Tensor) -> Callable[[], Tensor]:
    """Warp of order 1, by ``grid_sample`` likewise."""
    block = _monai("Warp", padding_mode="border")
    return lambda: block(image, flow)


def _monai(name: str, **arguments: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the compiled sampler is missing
        from monai.networks import blocks

        return getattr(blocks, name)(**arguments)


# --- losses: MONAI's, and neurite's, where voxelmorph has its own ---------------------------------------------------


def monai_lncc(x: Tensor, y: Tensor, window: int) -> Callable[[], Tensor]:
    """Local correlation over a box."""
    return _monai_loss("LocalNormalizedCrossCorrelationLoss", x, y, spatial_dims=3, kernel_size=window)


def neurite_lncc(x: Tensor, y: Tensor, window: int) -> Callable[[], Tensor]:
    """Local correlation over a box."""
    from neurite.nn.functional import ncc

    return lambda: 1 - ncc(x, y, window_size=window).mean()


def monai_bending(flow: Tensor) -> Callable[[], Tensor]:
    """Bending energy by central differences."""
    return _monai_loss("BendingEnergyLoss", flow)


def monai_dice(x: Tensor, y: Tensor) -> Callable[[], Tensor]:
    """Soft Dice of channels, squares below."""
    return _monai_loss("DiceLoss", x, y, squared_pred=True)


def neurite_dice(x: Tensor, y: Tensor) -> Callable[[], Tensor]:
    """Soft Dice of channels, squares below."""
    from neurite.nn.functional import dice

    return lambda: 1 - dice(x, y).mean()


def warped_dice(moving: Tensor, fixed: Tensor, flow: Tensor, labels: int) -> Callable[[], Tensor]:
    """As it is usually done: every label's indicator through ``grid_sample``, then neurite's Dice of them all."""
    one_hot, truth = (F.one_hot(m[:, 0].long(), labels + 1).movedim(-1, 1)[:, 1:].float() for m in (moving, fixed))

    def call() -> Tensor:
        grid = normalised(ops.identity(flow.shape[2:]) + flow)
        return neurite_dice(grid_sample(one_hot, grid)(), truth)()

    return call


def _monai_loss(name: str, *tensors: Tensor, **arguments: Any) -> Callable[[], Tensor]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from monai import losses

        loss = getattr(losses, name)(**arguments)
    return lambda: loss(*tensors)
