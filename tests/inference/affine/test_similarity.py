"""Mutual information and correlation of weighted samples, against slow and obvious ones."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from regnet.inference.affine.similarity import correlation, mutual_information


def samples(count: int = 400, channels: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(3)
    fixed, moving = torch.rand(2, 1, channels, count, generator=draw, dtype=torch.float64)
    return fixed, 0.5 * moving + 0.5 * fixed, torch.rand(1, count, generator=draw, dtype=torch.float64)


def cubic(x: float) -> float:
    x = abs(x)
    return 2 / 3 - x * x + x**3 / 2 if x < 1 else (2 - x) ** 3 / 6 if x < 2 else 0.0


def slow_information(fixed: np.ndarray, moving: np.ndarray, weight: np.ndarray) -> float:
    """Normalised mutual information of one channel, sample by sample."""
    joint = np.zeros((32, 32))
    for f, m, w in zip(fixed, moving, weight, strict=True):
        for i in range(32):
            for j in range(32):
                joint[i, j] += w * max(0.0, 1 - abs(31 * f - i)) * cubic(1.5 + 28 * m - j)
    joint /= joint.sum()

    def entropy(p: np.ndarray) -> float:
        return -sum(x * math.log(x) for x in p.ravel() if x > 0)

    return (entropy(joint.sum(0)) + entropy(joint.sum(1))) / entropy(joint)


def test_information_is_that_of_a_histogram_made_sample_by_sample() -> None:
    fixed, moving, weight = samples(60)
    found = mutual_information(fixed, moving, weight)
    slow = [slow_information(fixed[0, c].numpy(), moving[0, c].numpy(), weight[0].numpy()) for c in range(2)]
    assert float(found) == pytest.approx(np.mean(slow), rel=1e-9)


def test_correlation_is_numpy_s_squared() -> None:
    fixed, moving, weight = samples()
    slow = []
    for c in range(2):
        covariance = np.cov(fixed[0, c].numpy(), moving[0, c].numpy(), aweights=weight[0].numpy())
        slow.append(covariance[0, 1] ** 2 / (covariance[0, 0] * covariance[1, 1]))
    assert float(correlation(fixed, moving, weight)) == pytest.approx(np.mean(slow), rel=1e-9)


@pytest.mark.parametrize("measure", [mutual_information, correlation])
def test_samples_without_weight_are_not_there(measure: object) -> None:
    fixed, moving, weight = samples()
    weight[:, ::3] = 0
    kept = weight[0] > 0
    torch.testing.assert_close(
        measure(fixed, moving, weight),  # type: ignore[operator]
        measure(fixed[..., kept], moving[..., kept], weight[:, kept]),  # type: ignore[operator]
    )


def test_information_sees_through_any_contrast_and_correlation_only_through_gain_and_sign() -> None:
    fixed = samples(20_000, 1)[0]
    weight = torch.ones(1, 20_000, dtype=torch.float64)
    other = 0.5 + 0.45 * torch.sin(9 * fixed)
    unrelated = fixed.flip(-1)
    information = [float(mutual_information(fixed, m, weight)) for m in (fixed, 1 - fixed, other, unrelated)]
    assert information[1] == pytest.approx(information[0], abs=1e-3)
    assert information[2] > 1.3
    assert information[3] < 1.02
    correlations = [float(correlation(fixed, m, weight)) for m in (fixed, 0.9 - 0.5 * fixed, other, unrelated)]
    assert correlations[:2] == pytest.approx([1.0, 1.0])
    assert max(correlations[2:]) < 0.2


@pytest.mark.parametrize("measure", [mutual_information, correlation])
def test_the_derivatives_in_intensity_and_weight_are_exact(measure: object) -> None:
    fixed, moving, weight = samples(30)
    moving.requires_grad_(True)
    weight.requires_grad_(True)
    assert torch.autograd.gradcheck(lambda m, w: measure(fixed, m, w), (moving, weight), rtol=1e-6)  # type: ignore
