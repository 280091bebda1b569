import pytest
import torch

from regnet.data.normalise import normalise
from regnet.data.spec import InputSpec


def brain(ndim, background=0.0):
    """A ball of values 20 to 120 on a constant background; unequal axes."""
    shape = (31, 40, 26)[:ndim]
    axes = torch.meshgrid(*(torch.linspace(-1, 1, n) for n in shape), indexing="ij")
    inside = sum(axis**2 for axis in axes) < 0.5
    values = 70 + 50 * torch.sin(3 * axes[0] + 5 * axes[1])
    return torch.where(inside, values, torch.tensor(background))[None], inside[None]


@pytest.mark.parametrize("ndim", [2, 3])
@pytest.mark.parametrize(("gain", "offset"), [(1.0, 0.0), (37.5, -1024.0), (1e-4, 3.0), (2000.0, 1e5)])
def test_percentiles_forget_slope_and_intercept(ndim, gain, offset):
    image, inside = brain(ndim)
    expected = normalise(image, InputSpec(ndim=ndim))
    result = normalise(image * gain + offset, InputSpec(ndim=ndim))
    # float32 has 7 digits: at an offset of 1e5 and a range of 2.4e5 that is 1e-6 of the range
    assert (result - expected).abs().max() < (1e-2 if gain == 1e-4 else 1e-4)
    assert (expected[~inside] == 0).all()
    assert float(expected.max()) == 1
    assert abs(float(expected[inside].median()) - 70 / 120) < 0.05


def test_percentiles_do_not_depend_on_how_much_air_there_is():
    image, _ = brain(3)
    wide = torch.nn.functional.pad(image, (20, 5, 0, 30, 12, 12))
    spec = InputSpec()
    torch.testing.assert_close(normalise(wide, spec)[:, 12:-12, :-30, 20:-5], normalise(image, spec), atol=1e-3, rtol=0)


def test_a_few_hot_voxels_and_ringing_below_the_background_change_little():
    image, inside = brain(3)
    spoiled = image.clone()
    spoiled[0, 15, 20, 10:13] = 1e5
    spoiled[:, ::7, ::5, ::3][~inside[:, ::7, ::5, ::3]] = -8
    difference = (normalise(spoiled, InputSpec()) - normalise(image, InputSpec())).abs()
    difference[0, 15, 20, 10:13] = 0
    assert difference.max() < 0.02


def test_noise_in_the_air_stays_near_zero():
    image, inside = brain(3)
    noisy = image + torch.randn(image.shape, generator=torch.Generator().manual_seed(0)).abs()
    result = normalise(noisy, InputSpec())
    assert result[~inside].mean() < 0.02
    assert abs(float(result[inside].median()) - 70 / 120) < 0.05


def test_channels_are_normalised_by_themselves():
    image, _ = brain(2)
    both = normalise(torch.cat([image, 100 - 3 * image]), InputSpec(ndim=2, channels=2))
    torch.testing.assert_close(both[:1], normalise(image, InputSpec(ndim=2)))
    assert both[1].min() == 0 and both[1].max() == 1


def test_window_zscore_and_none_are_what_they_say():
    image, inside = brain(3)
    window = normalise(image, InputSpec(normalisation="window 20 220"))
    torch.testing.assert_close(window, ((image - 20) / 200).clamp(0, 1))
    score = normalise(image, InputSpec(normalisation="zscore", background=-9.0))
    assert (score[~inside] == -9).all()
    assert abs(float(score[inside].mean())) < 1e-4
    assert abs(float(score[inside].std()) - 1) < 1e-3
    assert torch.equal(normalise(image, InputSpec(normalisation="none")), image)


@pytest.mark.parametrize("bright", [True, False])
def test_an_image_of_two_values_becomes_zero_and_one(bright):
    image = torch.full((1, 20, 30), 5.0)
    image[0, 3, 4] = 9.0 if bright else 1.0
    result = normalise(image, InputSpec(ndim=2))
    assert torch.isfinite(result).all()
    assert sorted(torch.unique(result).tolist()) == [0, 1]


@pytest.mark.parametrize("gain", [1e36, 1e-30])
def test_percentiles_hold_to_the_ends_of_float32(gain):
    image, _ = brain(3)
    spec = InputSpec()
    torch.testing.assert_close(normalise(image * gain, spec), normalise(image, spec), atol=1e-4, rtol=0)
