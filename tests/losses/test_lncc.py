"""Laws of the local correlation."""

import pytest
import torch
from torch import Tensor

from regnet.losses import _lncc, lncc
from regnet.losses._window import Window

SHAPES = [(2, 2, 5, 7, 6), (2, 3, 9, 8), (1, 1, 17)]


def _images(shape: tuple[int, ...], dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(len(shape))
    x, y = (torch.rand(shape, generator=generator, dtype=dtype) for _ in range(2))
    return x, 0.5 * x + y


def _mask(shape: tuple[int, ...]) -> Tensor:
    return torch.rand((shape[0], 1, *shape[2:]), generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def _slow_lncc(x: Tensor, y: Tensor, half: tuple[int, ...], mask: Tensor) -> float:
    """One minus the mean squared correlation, window by window: slow and obvious."""
    losses = []
    for n in range(len(x)):
        total, weights = 0.0, 0.0
        for c in range(x.shape[1]):
            for index in torch.cartesian_prod(*(torch.arange(size) for size in x.shape[2:])).reshape(-1, len(half)):
                box = tuple(slice(max(0, int(i) - h), int(i) + h + 1) for i, h in zip(index, half, strict=True))
                w = mask[n, 0][box].flatten()
                if w.sum() == 0:
                    continue
                a, b = x[n, c][box].flatten(), y[n, c][box].flatten()
                a, b = a - (w * a).sum() / w.sum(), b - (w * b).sum() / w.sum()
                va, vb = (w * a * a).sum(), (w * b * b).sum()
                if va < 1e-12 and vb < 1e-12:
                    continue
                at = float(mask[n, 0][tuple(index)])
                weights += at
                if va > 1e-12 and vb > 1e-12:
                    total += at * float((w * a * b).sum() ** 2 / (va * vb))
        losses.append(1 - total / weights)
    return sum(losses) / len(losses)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("masked", ["no mask", "soft", "hard"])
def test_lncc_is_the_mean_squared_correlation_of_windows_cut_at_the_faces(shape: tuple[int, ...], masked: str) -> None:
    x, y = _images(shape)
    x[0, 0, :4], y[0, 0, 2:6] = 0.5, -1  # flat windows in one image, and in both
    mask = {"no mask": None, "soft": _mask(shape), "hard": (_mask(shape) > 0.4).double()}[masked]
    window = (3, 5, 3)[: len(shape) - 2]
    every = torch.ones(shape[0], 1, *shape[2:], dtype=torch.float64)
    expected = _slow_lncc(x, y, tuple(w // 2 for w in window), every if mask is None else mask)
    assert float(lncc(x, y, window, mask)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("shape", [(1, 2, 4, 3, 5), (2, 1, 6, 5), (2, 2, 9)])
@pytest.mark.parametrize("masked", [False, True])
def test_lncc_has_the_exact_gradient_in_both_images(shape: tuple[int, ...], masked: bool) -> None:
    x, y = (image.requires_grad_() for image in _images(shape))
    mask = _mask(shape) if masked else None
    assert torch.autograd.gradcheck(lambda a, b: lncc(a, b, 3, mask), (x, y), eps=1e-6, atol=1e-8, rtol=1e-6)


def test_lncc_gives_no_gradient_to_an_image_that_wants_none() -> None:
    x, y = _images((1, 1, 6, 7))
    (gradient,) = torch.autograd.grad(3 * lncc(x.requires_grad_(), y, 3), x)
    (alone,) = torch.autograd.grad(lncc(x, y.requires_grad_(), 3), x)
    assert torch.allclose(gradient, 3 * alone)
    with torch.no_grad():
        assert not lncc(x, y, 3).requires_grad


@pytest.mark.parametrize("window", [3, 9, 23])
def test_lncc_of_an_image_with_itself_is_zero_though_most_of_its_windows_are_flat(window: int) -> None:
    # C-27: counting flat windows as 0 gives similarities 0.126 and 0.574 for windows 3 and 9
    box = torch.zeros(1, 1, 24, 24, 24)
    box[..., 6:18, 6:18, 6:18] = 1
    assert float(lncc(box, box, window)) == pytest.approx(0, abs=1e-6)
    assert float(lncc(box, -3 * box, window)) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(("gain", "offset"), [(1, 1e4), (-255, 0), (1e-12, 0), (1e6, -1e7), (1e-3, 3)])
def test_lncc_does_not_depend_on_gain_and_offset_in_float32(gain: float, offset: float) -> None:
    x, y = _images((1, 2, 12, 13, 9), torch.float32)
    # what float32 still holds of the image at this gain and offset is what can be asked for
    stored = gain * x + offset
    exact = lncc(((stored.double() - offset) / gain), y.double(), 5)
    assert float(lncc(stored, y, 5)) == pytest.approx(float(exact), abs=2e-6)


def test_lncc_of_dim_detail_on_a_bright_ramp_is_accurate_in_float32() -> None:
    # local contrast 1.4 % of the image's: sums of squares about one global mean lose the most here
    x, y = _images((1, 1, 24, 20, 16), torch.float32)
    ramp = torch.linspace(-1, 1, 24).view(-1, 1, 1).sign()
    a, b = (ramp + 0.05 * image for image in (x, y))
    leaves = [image.clone().requires_grad_() for image in (a, a.double())]
    values = [lncc(leaf, b.to(leaf.dtype), 5) for leaf in leaves]
    first, second = (value.item() for value in values)
    single, double = (torch.autograd.grad(value, leaf)[0] for value, leaf in zip(values, leaves, strict=True))
    assert first == pytest.approx(second, abs=1e-4)
    assert float((single - double).abs().max() / double.abs().max()) < 1e-3


def test_lncc_counts_structure_that_faces_nothing_as_unlike() -> None:
    x, _ = _images((1, 1, 9, 8, 7))
    assert float(lncc(x, torch.full_like(x, 3), 5)) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("value", [0.0, 1e4, 1 / 3])
def test_lncc_of_constant_images_is_zero_with_zero_gradients(dtype: torch.dtype, value: float) -> None:
    x, y = (torch.full((2, 1, 9, 8, 7), value, dtype=dtype, requires_grad=True) for _ in range(2))
    loss = lncc(x, y, 5)
    loss.backward()
    assert loss.item() == 0
    assert not x.grad.any() and not y.grad.any()


def test_lncc_stays_between_zero_and_one_in_every_type() -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        x, y = (100 * image.to(dtype) for image in _images((2, 1, 11, 10)))
        for other in (x, y, -x):
            loss = lncc(x, other, 7)
            assert loss.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
            assert 0 <= loss.item() <= 1


def test_lncc_gives_each_image_a_gradient_of_its_type() -> None:
    x, y = _images((1, 1, 11, 10))
    half, double = x.half().requires_grad_(), y.requires_grad_()
    lncc(half, double, 3).backward()
    assert half.grad.dtype == torch.float16 and double.grad.dtype == torch.float64


def test_lncc_ignores_what_lies_outside_the_mask() -> None:
    x, y = _images((1, 2, 12, 9, 8))
    mask = torch.zeros(1, 1, 12, 9, 8)
    mask[:, :, 2:9, 1:8, 2:7] = 1
    inside = (..., slice(2, 9), slice(1, 8), slice(2, 7))
    cropped = lncc(x[inside], y[inside], 5)
    assert torch.allclose(lncc(x, y, 5, mask), cropped)
    assert torch.allclose(lncc(torch.where(mask > 0, x, 1e3), torch.where(mask > 0, y, -7.0), 5, mask), cropped)


def test_lncc_of_a_batch_is_the_mean_over_its_samples_however_many_of_their_windows_are_flat() -> None:
    x, y = _images((3, 1, 9, 8))
    x[1, :, :6] = y[1, :, :6] = 0
    one_by_one = [lncc(x[n : n + 1], y[n : n + 1], 3) for n in range(3)]
    assert torch.allclose(lncc(x, y, 3), torch.stack(one_by_one).mean())


@pytest.mark.parametrize("window", [4, 0, -1, (3, 4), (3,)])
def test_lncc_refuses_windows_without_a_centre(window: int | tuple[int, ...]) -> None:
    x, y = _images((1, 1, 9, 8))
    with pytest.raises(ValueError, match="window must be odd"):
        lncc(x, y, window)


def _slow_gaussian(x: Tensor, y: Tensor, width: int, squared: bool) -> float:
    """One minus the mean correlation under the weights of three boxes in turn, as a matrix of all pairs of voxels."""
    weight = torch.ones(1, 1, dtype=torch.float64)
    for size in x.shape:
        index = torch.arange(size)
        box = ((index[:, None] - index).abs() <= width // 2).double()
        weight = torch.kron(weight, box @ box @ box)
    a, b = x.flatten(), y.flatten()
    share = weight / weight.sum(1, keepdim=True)
    covariance = share @ (a * b) - (share @ a) * (share @ b)
    variances = (share @ (a * a) - (share @ a) ** 2) * (share @ (b * b) - (share @ b) ** 2)
    cc = covariance / variances.sqrt()
    return 1 - float((cc.square() if squared else cc).mean())


@pytest.mark.parametrize("shape", [(1, 1, 6, 5, 4), (1, 1, 9, 8)])
@pytest.mark.parametrize("squared", [False, True])
def test_gaussian_lncc_weights_the_window_with_a_bell(shape: tuple[int, ...], squared: bool) -> None:
    x, y = _images(shape)
    expected = _slow_gaussian(x[0, 0], y[0, 0], 3, squared)
    assert float(lncc(x, y, 3, kernel="gaussian", squared=squared)) == pytest.approx(expected, abs=1e-12)


def test_the_bell_has_the_standard_deviation_that_is_told() -> None:
    # a unit pulse under three boxes of 5: variance 3 * (5² - 1) / 12 = 6, and sqrt(5² - 1) / 2 = sqrt(6)
    pulse = torch.zeros(1, 1, 31, dtype=torch.float64)
    pulse[..., 15] = 1
    bell = Window((5,), 3, True).sum(pulse)[0, 0] / 125
    variance = (bell * (torch.arange(31) - 15) ** 2).sum()
    assert float(bell.sum()) == pytest.approx(1) and float(variance) == pytest.approx(6)


def test_signed_lncc_tells_an_inverted_contrast() -> None:
    x, _ = _images((1, 1, 9, 8, 7))
    assert float(lncc(x, 3 * x + 1, 5, squared=False)) == pytest.approx(0, abs=1e-9)
    assert float(lncc(x, 1 - 3 * x, 5, squared=False)) == pytest.approx(2, abs=1e-9)


@pytest.mark.parametrize("kernel", ["box", "gaussian"])
@pytest.mark.parametrize("masked", [False, True])
def test_lncc_is_the_same_in_one_slab_and_in_many(kernel: str, masked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = (image.requires_grad_() for image in _images((2, 2, 23, 6, 7)))
    mask = _mask((2, 2, 23, 6, 7)) if masked else None
    results = []
    for small in (2**20, 0):
        monkeypatch.setattr(_lncc, "_SMALL", small)
        value = lncc(x, y, 3, mask, kernel)
        results.append((value.detach(), *torch.autograd.grad(value, (x, y))))
    for whole, cut in zip(*results, strict=True):
        torch.testing.assert_close(cut, whole, atol=1e-13, rtol=1e-11)


@pytest.mark.parametrize("peer", ["monai", "neurite"])
def test_lncc_pulls_as_that_of_others_does_where_theirs_is_right(peer: str) -> None:
    # In windows away from the faces, where they pad with 0, and with the images' mean taken off, which their sums of
    # squares need. A voxel two windows inside sees whole windows only, and its gradient no other voxel's.
    x, y = _images((1, 1, 24, 23, 22))
    x, y = x - 0.5, (y - 0.75).detach()
    x.requires_grad_()
    if peer == "monai":
        monai = pytest.importorskip("monai.losses")
        theirs = monai.LocalNormalizedCrossCorrelationLoss(kernel_size=5, smooth_dr=1e-12)(x, y)
    else:
        neurite = pytest.importorskip("neurite.nn.functional")
        theirs = -neurite.ncc(x, y, window_size=5, eps=1e-12).mean()
    inside = (..., *[slice(8, -8)] * 3)
    (expected,) = torch.autograd.grad(theirs, x)
    (gradient,) = torch.autograd.grad(lncc(x, y, 5), x)
    torch.testing.assert_close(gradient[inside], expected[inside], atol=0, rtol=2e-3)


def _faint(x: Tensor) -> Tensor:
    """Texture of a tenth at an offset of 1000."""
    return 1000 + 0.1 * x


def test_lncc_keeps_its_range_for_faint_texture_on_an_offset_and_for_large_half_precision() -> None:
    x, y = _images((1, 1, 24, 24, 24), torch.float32)
    assert lncc(_faint(x), _faint(x), 3).item() == pytest.approx(0, abs=1e-5)
    half = (255 * x).half().requires_grad_()
    loss = lncc(half, (255 * y).half(), 3)
    loss.backward()
    assert 0 < loss.item() < 1 and half.grad.isfinite().all()


def test_lncc_of_monai_leaves_its_range_there() -> None:
    # below -1e3 where it should be -1; NaN in float16
    monai = pytest.importorskip("monai.losses").LocalNormalizedCrossCorrelationLoss(kernel_size=3)
    x, y = _images((1, 1, 24, 24, 24), torch.float32)
    assert monai(_faint(x), _faint(x)).item() < -1e3
    assert monai((255 * x).half(), (255 * y).half()).isnan()


def test_lncc_refuses_an_unknown_kernel() -> None:
    x, y = _images((1, 1, 9, 8))
    with pytest.raises(ValueError, match="kernel must be one of box, gaussian"):
        lncc(x, y, 3, kernel="triangle")
