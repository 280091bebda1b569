"""Descent ends at the best point it looked at, and stops where nothing is won."""

import math

import pytest
import torch

from regnet.inference.refine.descent import Clock, descend


def test_it_ends_at_the_least_of_all_it_evaluated() -> None:
    value = torch.tensor([3.0, -2.0], requires_grad=True)
    seen: list[float] = []
    final = descend([value], lambda: value.square().sum(), 25, 1.7, report=lambda _, loss: seen.append(loss))
    assert final <= min(seen)
    assert float(value.detach().square().sum()) == pytest.approx(final)


def test_no_step_only_evaluates() -> None:
    value = torch.tensor([3.0], requires_grad=True)
    assert descend([value], lambda: value.square().sum(), 0, 1.0) == 9
    assert value.item() == 3


def test_what_turns_out_not_finite_is_left_for_the_best_before() -> None:
    value = torch.tensor([1.0], requires_grad=True)
    final = descend([value], lambda: torch.log(value).sum(), 30, 0.15)
    assert math.isfinite(final)
    assert float(torch.log(value.detach())) == pytest.approx(final)


def test_a_plateau_ends_it() -> None:
    value = torch.tensor([0.0], requires_grad=True)
    seen: list[int] = []
    descend([value], lambda: (value * 0).sum() + 1, 1000, 0.1, report=lambda done, _: seen.append(done))
    assert len(seen) < 20


def test_a_clock_is_shared_out_and_ends() -> None:
    assert not Clock.of(None).share(0.5).is_over()
    whole = Clock.of(100.0)
    assert whole.share(0.25).end < whole.end
    assert Clock(0.0).is_over()
