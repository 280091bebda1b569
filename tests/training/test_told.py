"""Draws of a training are functions of seed, epoch and sample."""

import pytest
import torch

from regnet.models import ConditionalUNet, ProbabilisticVelocityHead, Registration, UNet, VelocityHead
from regnet.training.told import what_is_told

PLAIN = Registration(UNet(2, 2, (4, 4), (4,)), VelocityHead(2, 4))
TOLD = Registration(ConditionalUNet(2, 2, (4, 4), (4,), regularity=(1.0, 3.0)), VelocityHead(2, 4))
DRAWING = Registration(UNet(2, 2, (4, 4), (4,)), ProbabilisticVelocityHead(2, 4))


def _batch(*index):
    return {"fixed": torch.zeros(len(index), 1, 8, 8), "index": torch.tensor(index)}


def test_a_plain_model_is_told_nothing():
    assert what_is_told(PLAIN, _batch(0, 1), 0, 3) == {}


def test_weights_fill_the_range_and_change_with_seed_epoch_and_sample():
    def weight(seed, epoch, index):
        told = what_is_told(TOLD, _batch(index, 99), seed, epoch)["regularity"]
        assert told.shape == (2,) and told[0] == told[1]
        return float(told[0])

    drawn = [weight(0, epoch, index) for epoch in range(20) for index in range(20)]
    assert min(drawn) >= 1 and max(drawn) <= 3 and len(set(drawn)) > 390
    assert sum(drawn) / 400 == pytest.approx(2, abs=0.1)
    assert weight(0, 4, 7) == weight(0, 4, 7) != weight(1, 4, 7)


def test_each_sample_draws_by_itself():
    both, other = (what_is_told(DRAWING, _batch(*index), 5, 2)["draw"] for index in ((3, 8), (8, 3)))
    assert torch.equal(both, other.flip(0)) and both[0] != both[1]
    assert not torch.equal(both, what_is_told(DRAWING, _batch(3, 8), 5, 1)["draw"])


def test_nothing_is_drawn_in_validation():
    assert what_is_told(DRAWING, _batch(0), 0, None) == {}
    assert what_is_told(TOLD, _batch(0), 0, None)["regularity"] == 2
