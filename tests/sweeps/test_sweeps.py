"""What trials are compared by, what is tried, and what is kept of it."""

import json

import pytest
import yaml

from regnet.errors import InputError
from regnet.report.sweep import write_sweep_page
from regnet.sweeps import (
    Choice,
    Interval,
    Trial,
    best,
    costs,
    from_plain,
    grid,
    pareto,
    quality,
    read_trials,
    refuse_loss,
    to_plain,
    write_sweep,
    write_trial,
)
from regnet.sweeps.experiment import experiment

SPACE = {"optimizer.lr": Interval(1e-4, 1e-2, log=True), "model": Choice(("a", "b"))}


def test_overlap_comes_before_landmarks_and_landmarks_before_likeness():
    metrics = {"val/loss": 9.0, "val/similarity": 0.4, "val/tre": 2.0, "val/dice": 0.75}
    assert costs(metrics, ["quality", "val/similarity"]) == {"1 - val/dice": 0.25, "val/similarity": 0.4}
    assert quality({"val/loss": 9.0, "val/similarity": 0.4, "val/tre": 2.0}) == "val/tre"
    assert quality({"val/loss": 9.0, "val/similarity": 0.4}) == "val/similarity"


def test_a_misspelt_objective_is_answered_with_those_there_are():
    with pytest.raises(InputError, match="no 'val/dyce' was logged, only val/dice, val/loss"):
        costs({"val/dice": 1.0, "val/loss": 0.0}, ["val/dyce"])


def test_a_weight_is_not_swept_against_the_loss_it_scales():
    with pytest.raises(InputError, match=r"sweeping loss\.terms\.smoothness\.weight against val/loss"):
        refuse_loss(["optimizer.lr", "loss.terms.smoothness.weight"], ["val/loss"])
    refuse_loss(["loss.terms.smoothness.weight"], ["quality"])
    refuse_loss(["optimizer.lr"], ["val/loss"])


def test_a_grid_has_every_combination_and_no_interval():
    space = {"a": Choice(("1", "2")), "b": Choice(("x", "y", "z"))}
    assert [tuple(each.values()) for each in grid(space)] == [(a, b) for a in "12" for b in "xyz"]
    with pytest.raises(InputError, match=r"optimizer\.lr: a grid needs single values"):
        grid(SPACE)


def test_a_space_survives_its_file():
    assert from_plain(json.loads(json.dumps(to_plain(SPACE)))) == SPACE
    assert json.loads(json.dumps(to_plain(SPACE))) == to_plain(SPACE)


def test_the_front_is_what_none_beats_and_equal_trials_share_it():
    points = {0: (1.0, 5.0), 1: (2.0, 2.0), 2: (3.0, 2.0), 3: (5.0, 1.0), 4: (2.0, 2.0), 5: (4.0, 4.0)}
    assert pareto(points) == [0, 1, 3, 4]


def _sweep(folder, cost):
    """Six finished trials whose cost is a function of the rate, a failed one and a pruned one."""
    write_sweep(
        folder, {"space": to_plain(SPACE), "fixed": ["data=smoke"], "objectives": ["quality"], "sampler": "tpe"}
    )
    for number in range(6):
        lr = 10 ** (-4 + number / 3)
        metrics = {"val/dice": 1 - cost(lr), "val/sdlogj": 0.1 * number}
        trial = Trial(number, {"optimizer.lr": str(lr), "model": "ab"[number % 2]}, "done", metrics)
        trial.costs = costs(metrics, ["quality"])
        write_trial(folder, trial)
    write_trial(folder, Trial(6, {"optimizer.lr": "1e-2", "model": "b"}, "failed", error="the loss <is> nan"))
    write_trial(
        folder, Trial(7, {"optimizer.lr": "1e-2", "model": "b"}, "pruned", {"val/dice": 0.1, "val/sdlogj": 1.0})
    )


def test_the_page_holds_all_trials_and_fetches_nothing(tmp_path):
    _sweep(tmp_path, lambda lr: 0.3 + lr)
    assert list(read_trials(tmp_path)) == list(range(8))
    first = write_sweep_page(tmp_path, tmp_path / "index.html", "regnet train experiment=best")
    assert first.number == 0 == best(read_trials(tmp_path).values()).number
    page = (tmp_path / "index.html").read_text("utf-8")
    assert "8 trials (6 done, 1 pruned, 1 failed) by tpe" in page
    assert "the loss &lt;is&gt; nan" in page and "Pareto front" in page
    assert page.count("<svg") == page.count("</svg>") >= 3
    assert not [word for word in ("<script", "src=", "<link", "@import", "url(http") if word in page]


def test_the_key_that_makes_the_difference_is_the_important_one(tmp_path):
    pytest.importorskip("optuna")
    from regnet.sweeps.study import importances

    _sweep(tmp_path, lambda lr: 0.3 + 10 * lr)
    done = [trial for trial in read_trials(tmp_path).values() if trial.state == "done"]
    shares = importances(done, SPACE)
    assert shares["optimizer.lr"] > shares["model"] and sum(shares.values()) == pytest.approx(1)
    assert importances(done[:3], SPACE) == {}


def test_a_folder_without_a_sweep_or_a_finished_trial_has_no_page(tmp_path):
    with pytest.raises(InputError, match="not the folder of a sweep"):
        write_sweep_page(tmp_path, tmp_path / "index.html", "")
    write_sweep(tmp_path, {"space": {}, "fixed": [], "objectives": ["quality"], "sampler": "grid"})
    with pytest.raises(InputError, match="none of its 0 trials has finished"):
        write_sweep_page(tmp_path, tmp_path / "index.html", "")


def test_an_experiment_says_what_the_words_said():
    words = [
        "experiment=smoke",
        "hparams_search=optuna",
        "model=b",
        "optimizer.lr=1e-3",
        "+loss.terms.x.on=field",
        "model=a",
    ]
    text = experiment(words, lambda key: key in ("model", "hparams_search"), "trial 3")
    assert text.startswith("# @package _global_\n# trial 3\n")
    assert yaml.safe_load(text) == {
        "defaults": ["smoke", "_self_", {"override /model": "a"}],
        "optimizer": {"lr": 1e-3},
        "loss": {"terms": {"x": {"on": "field"}}},
    }
