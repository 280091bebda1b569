"""Optuna's part: a study that is cut off goes on, and hopeless trials end."""

import pytest

from regnet.errors import InputError
from regnet.sweeps import Choice, Interval

optuna = pytest.importorskip("optuna")

from regnet.sweeps import study as studies  # noqa: E402

SPACE = {"x": Interval(0.0, 1.0), "n": Interval(1, 8, integer=True), "model": Choice(("a", "b"))}


def test_what_was_asked_and_not_told_is_asked_again_with_the_same_values(tmp_path):
    study = studies.open_study(tmp_path, "tpe", 0, 1)
    told, cut_off = studies.ask(study, SPACE), studies.ask(study, SPACE)
    told.state, told.costs = "done", {"cost": 0.5}
    studies.tell(study, told)
    studies.tell(study, told)  # once more changes nothing
    again = studies.open_study(tmp_path, "tpe", 0, 1)
    assert studies.unfinished(again) == [cut_off]
    assert len(again.trials) == 2
    assert studies.ask(again, SPACE).values not in (told.values, cut_off.values)


def test_a_failed_trial_is_recorded_as_failed(tmp_path):
    study = studies.open_study(tmp_path, "tpe", 0, 1)
    trial = studies.ask(study, SPACE)
    trial.state = "failed"
    studies.tell(study, trial)
    assert [each.state for each in study.trials] == [optuna.trial.TrialState.FAIL]


def test_a_trial_worse_than_the_median_is_hopeless_once_there_are_enough(tmp_path):
    study = studies.open_study(tmp_path, "tpe", 0, 1)
    for cost in (0.1, 0.2, 0.3):
        trial = studies.ask(study, SPACE)
        assert not studies.is_hopeless(tmp_path, trial.number, 0, cost, prune_after=3)
        trial.state, trial.costs = "done", {"cost": cost}
        studies.tell(study, trial)
    good, bad = studies.ask(study, SPACE), studies.ask(study, SPACE)
    assert not studies.is_hopeless(tmp_path, good.number, 0, 0.15, prune_after=3)
    assert studies.is_hopeless(tmp_path, bad.number, 0, 0.9, prune_after=3)


def test_a_search_of_several_costs_finds_the_front(tmp_path):
    study = studies.open_study(tmp_path, "nsga2", 0, 2)
    for _ in range(4):
        trial = studies.ask(study, SPACE)
        x = float(trial.values["x"])
        trial.state, trial.costs = "done", {"first": x, "second": 1 - x}
        studies.tell(study, trial)
    assert len(study.best_trials) == 4  # each is better in one and worse in the other
    with pytest.raises(InputError, match="a study of 2 objectives, not 1"):
        studies.open_study(tmp_path, "tpe", 0, 1)


def test_an_unknown_sampler_is_refused(tmp_path):
    with pytest.raises(InputError, match="expected grid, tpe or nsga2"):
        studies.open_study(tmp_path, "tpee", 0, 1)
