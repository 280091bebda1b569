"""Means of an epoch."""

import pytest
import torch

from regnet.training import means
from regnet.training.means import Means


def filled(*batches):
    filled = Means()
    for values, count in batches:
        filled.add(values, count)
    return filled


def test_a_mean_is_over_pairs_and_counts_a_value_where_it_is():
    one = filled(({"loss": torch.tensor(1.0), "dice": 0.5}, 2), ({"loss": 4.0}, 1))
    assert one.take() == {"loss": pytest.approx(2.0), "dice": pytest.approx(0.5)}
    assert one.take() == {}


def test_a_mean_goes_on_from_its_state():
    values = [torch.rand(()) for _ in range(7)]
    whole = filled(*(({"loss": value}, 3) for value in values))
    first, second = filled(*(({"loss": value}, 3) for value in values[:4])), Means()
    second.load(first.state())
    for value in values[4:]:
        second.add({"loss": value}, 3)
    assert second.take() == whole.take()


def test_processes_agree_whatever_each_of_them_saw():
    # Five pairs on two processes; only the second has seen labels.
    parts = [filled(({"loss": 1.0}, 3)).state(), filled(({"loss": 2.0, "dice": 0.7}, 2)).state()]
    assert means.merged(parts) == {"loss": pytest.approx(1.4), "dice": pytest.approx(0.7)}
