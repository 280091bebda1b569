"""Normalised mutual information where the joint histogram is known."""

import math

import pytest
import torch

from regnet import metrics
from regnet.metrics import normalised_mutual_information as nmi


def test_an_image_knows_itself_in_any_contrast() -> None:
    image = torch.rand(1, 1, 9, 8, 7, generator=torch.Generator().manual_seed(0))
    assert nmi(image, image) == pytest.approx(2)
    assert nmi(image, 1000 - 40 * image) == pytest.approx(2, abs=0.02)  # C-30: whatever the range
    assert nmi(image, torch.ones_like(image)) == pytest.approx(1)  # C-29
    assert nmi(torch.ones_like(image), torch.zeros_like(image)) == 1


def test_it_is_the_entropies_of_a_table_of_four() -> None:
    # pairs (0, 0) 3 times, (0, 1) 1, (1, 0) 0, (1, 1) 4 of 8
    a = torch.tensor([0.0, 0, 0, 0, 1, 1, 1, 1]).view(1, 1, 2, 4)
    b = torch.tensor([5.0, 5, 5, 9, 9, 9, 9, 9]).view(1, 1, 2, 4)

    def entropy(*shares: float) -> float:
        return -sum(share * math.log(share) for share in shares)

    expected = (entropy(1 / 2, 1 / 2) + entropy(3 / 8, 5 / 8)) / entropy(3 / 8, 1 / 8, 1 / 2)
    for bins in (2, 64):
        assert nmi(a, b, bins=bins) == pytest.approx(expected)


def test_independent_images_have_one_and_the_mask_chooses_the_voxels() -> None:
    a = torch.arange(4.0).view(1, 1, 4, 1).expand(1, 1, 4, 6).contiguous()
    b = torch.arange(6.0).view(1, 1, 1, 6).expand(1, 1, 4, 6).contiguous()
    assert nmi(a, b) == pytest.approx(1)
    mask = torch.zeros(1, 1, 4, 6)
    mask[0, 0, range(4), range(4)] = 1  # on the diagonal each tells the other
    assert nmi(a, b, mask) == pytest.approx(2)
    assert math.isnan(nmi(a, b, 0 * mask))
    with pytest.raises(ValueError, match="one shape"):
        nmi(a, b[..., :3])


def test_an_image_that_is_nan_where_it_counts_shares_nothing_that_can_be_told() -> None:
    one, two = torch.rand(1, 1, 6, 7), torch.rand(1, 1, 6, 7)
    mask = torch.ones(1, 1, 6, 7)
    one[..., 3, 3] = torch.nan
    mask[..., 3, 3] = 0
    assert math.isnan(metrics.normalised_mutual_information(one, two))
    assert metrics.normalised_mutual_information(one, two, mask=mask) >= 1


def test_a_histogram_without_bins_is_refused() -> None:
    image = torch.rand(1, 1, 4, 5)
    with pytest.raises(ValueError, match="bins must be at least 1"):
        nmi(image, image, bins=0)
