"""``regnet train -m``: sweeps that go on, whatever becomes of a trial. The runs are stand-ins but for the last."""

import os
import subprocess
import sys
from pathlib import Path

import hydra
import pytest
import yaml
from omegaconf import OmegaConf

import regnet.cli.train as command
from regnet.cli.main import main
from regnet.config import config_dir
from regnet.sweeps import read_metrics, read_trials, write_metrics
from regnet.training import RegistrationModule
from tests.cli.test_train import SMALL, as_it_was, mistake, pytestmark, train  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def runs(monkeypatch):
    """Numbers of the folders of the runs that were made; each has the overlap ``1 - lr``, or what ``told`` says."""
    made = []
    told = {}

    def run(config):
        folder = Path(config.paths.run_dir)
        made.append(int(folder.name))
        outcome = told.pop(int(folder.name), {"val/dice": 1 - float(config.optimizer.lr), "val/sdlogj": 0.1})
        if not isinstance(outcome, dict):
            raise outcome
        write_metrics(folder, outcome)
        return 0.0

    monkeypatch.setattr(command, "_job", run)
    made_and_told = (made, told)
    return made_and_told


def states(folder):
    return [trial.state for trial in read_trials(folder).values()]


def test_a_sweep_that_is_cut_off_goes_on_where_it_stopped(runs, tmp_path):
    made, told = runs
    words = ["-m", "optimizer.lr=0.1,0.2,0.3,0.4", "hydra.sweeper.jobs=1", f"hydra.sweep.dir={tmp_path}"]
    told[1] = KeyboardInterrupt()
    assert train(*words) == 130
    assert states(tmp_path) == ["done", "running"]
    assert train(*words) == 0
    assert made == [0, 1, 1, 2, 3]
    assert train(*words) == 0 and len(made) == 5  # nothing is done twice


@pytest.fixture
def epochs(monkeypatch):
    """Numbers of the epochs that real runs begin."""
    begun = []
    monkeypatch.setattr(RegistrationModule, "on_train_epoch_start", lambda self: begun.append(self.current_epoch))
    return begun


def test_a_trial_that_is_cut_off_goes_on_from_its_checkpoint(epochs, monkeypatch, tmp_path):
    words = ["-m", *SMALL, "trainer.max_epochs=3", "optimizer.lr=1e-3"]
    assert train(*words, f"hydra.sweep.dir={tmp_path}/whole") == 0
    epochs.clear()

    def stop(module):
        epochs.append(module.current_epoch)
        if module.current_epoch == 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(SystemExit) as left:
        patch.setattr(RegistrationModule, "on_train_epoch_start", stop)
        train(*words, f"hydra.sweep.dir={tmp_path}/cut")
    assert left.value.code == 130
    assert states(tmp_path / "cut") == ["running"] and epochs == [0, 1]
    assert train(*words, f"hydra.sweep.dir={tmp_path}/cut") == 0
    assert states(tmp_path / "cut") == ["done"] and epochs == [0, 1, 1, 2]
    whole, cut = (read_metrics(tmp_path / name / "0") for name in ("whole", "cut"))
    assert {**whole, "seconds": 0} == {**cut, "seconds": 0}


def test_a_hopeless_trial_ends_early_and_is_recorded_as_pruned(epochs, monkeypatch, tmp_path):
    pytest.importorskip("optuna")
    asked = []
    worse_and_worse = lambda logged, objectives: {objectives[0]: float(asked.append(0) or len(asked))}  # noqa: E731
    monkeypatch.setattr("regnet.training.callbacks.pruning.costs", worse_and_worse)
    search = ["hydra.sweeper.sampler=tpe", "hydra.sweeper.trials=2", "hydra.sweeper.prune_after=1"]
    words = ["-m", *SMALL, "trainer.max_epochs=3", *search, "optimizer.lr=interval(1e-4,1e-3)"]
    assert train(*words, f"hydra.sweep.dir={tmp_path}/sweep") == 0
    assert states(tmp_path / "sweep") == ["done", "pruned"]
    assert epochs == [0, 1, 2, 0]


def test_a_folder_of_another_sweep_is_refused(runs, tmp_path, capsys):
    assert train("-m", "optimizer.lr=0.1,0.2", f"hydra.sweep.dir={tmp_path}") == 0
    said = mistake(capsys, "-m", "optimizer.lr=0.1,0.3", f"hydra.sweep.dir={tmp_path}")
    assert "holds another sweep, with another space" in said
    assert runs[0] == [0, 1]


def test_a_grid_goes_on_past_a_failure_and_tells_it_at_the_end(runs, tmp_path, capsys):
    runs[1][0] = RuntimeError("no memory")
    said = mistake(capsys, "-m", "optimizer.lr=0.1,0.2,0.3", f"hydra.sweep.dir={tmp_path}")
    assert said.endswith("1 of 3 trials failed: no memory (trial 0)")
    assert states(tmp_path) == ["failed", "done", "done"]
    results = yaml.safe_load((tmp_path / "results.json").read_text("utf-8"))
    assert results["best"] == 1 and results["trials"]["0"] == "no memory"


def test_c68_nan_and_crashes_are_recorded_and_the_others_decide(runs, tmp_path, capsys):
    pytest.importorskip("optuna")
    made, told = runs
    told.update({1: {"val/dice": float("nan")}, 2: RuntimeError("crashed")})
    words = ["-m", "hydra.sweeper.sampler=tpe", "optimizer.lr=interval(0.1,0.9)", f"hydra.sweep.dir={tmp_path}"]
    assert train(*words, "hydra.sweeper.trials=4") == 0
    trials = read_trials(tmp_path)
    assert states(tmp_path) == ["done", "failed", "failed", "done"]
    assert "1 - val/dice is nan" in trials[1].error and trials[2].error == "crashed"
    best = max((trials[0], trials[3]), key=lambda trial: trial.metrics["val/dice"])
    assert f"best of 4: 1 - val/dice {1 - best.metrics['val/dice']:.4f} in {tmp_path / str(best.number)}" in (
        capsys.readouterr().out
    )
    assert train(*words, "hydra.sweeper.trials=5") == 0  # more trials, later
    assert made == [0, 1, 2, 3, 4]


def test_a_search_that_is_cut_off_repeats_the_trial_with_its_values(runs, tmp_path):
    pytest.importorskip("optuna")
    made, told = runs
    told[1] = KeyboardInterrupt()
    words = ["-m", "hydra.sweeper.sampler=tpe", "optimizer.lr=interval(0.1,0.9)", f"hydra.sweep.dir={tmp_path}"]
    assert train(*words, "hydra.sweeper.trials=3") == 130
    before = read_trials(tmp_path)[1].values
    assert train(*words, "hydra.sweeper.trials=3") == 0
    assert read_trials(tmp_path)[1].values == before
    assert made == [0, 1, 1, 2] and states(tmp_path) == ["done"] * 3


def test_c68_a_misspelt_objective_stops_at_the_first_trial_and_lists_what_there_is(runs, tmp_path, capsys):
    words = ["-m", "optimizer.lr=0.1,0.2", "hydra.sweeper.jobs=1", "hydra.sweeper.objectives=[val/dyce]"]
    said = mistake(capsys, *words, f"hydra.sweep.dir={tmp_path}")
    assert "no 'val/dyce' was logged, only val/dice, val/sdlogj" in said
    assert runs[0] == [0]


def test_a_weight_against_the_loss_is_refused_before_anything_runs(runs, tmp_path, capsys):
    words = ["-m", "loss.terms.smoothness.weight=0.1,1", "hydra.sweeper.objectives=[val/loss]"]
    said = mistake(capsys, *words, f"hydra.sweep.dir={tmp_path}/sweep")
    assert "sweeping loss.terms.smoothness.weight against val/loss: the smallest weight would win" in said
    assert not runs[0] and not (tmp_path / "sweep").exists()


def test_c69_the_old_key_of_a_search_space_is_refused(runs, tmp_path, capsys):
    words = ["-m", "+hydra.sweeper.search_space.optimizer.lr=1", f"hydra.sweep.dir={tmp_path}"]
    assert "the place is hydra.sweeper.params" in mistake(capsys, *words)
    assert not runs[0]


@pytest.mark.parametrize(("name", "jobs"), [("smoothness", 6), ("optuna", 2), ("pareto", 2)])
def test_c69_every_shipped_search_makes_different_jobs(name, jobs, runs, tmp_path):
    if name != "smoothness":
        pytest.importorskip("optuna")
    if name == "pareto":
        runs[1].update({n: {"val/dice": 0.5, "val/folding": 0.1 * n, "seconds": 3.0} for n in range(2)})
    assert train(f"hparams_search={name}", "hydra.sweeper.trials=2", f"hydra.sweep.dir={tmp_path}") == 0
    trials = read_trials(tmp_path).values()
    assert len({tuple(trial.values.items()) for trial in trials}) == len(trials) == jobs


def test_a_report_writes_the_page_and_the_best_trial_as_an_experiment(runs, tmp_path, capsys):
    sweep = tmp_path / "a sweep"
    assert train("-m", "optimizer.lr=0.1,0.2", "data=smoke", "seed=3", f"hydra.sweep.dir='{sweep}'") == 0
    assert main(["report", "sweep", str(sweep)]) == 0
    assert (sweep / "index.html").is_file()
    with hydra.initialize_config_dir(str(config_dir()), version_base="1.3"):
        search_path = f"hydra.searchpath=[file://{sweep}]"
        found = hydra.compose("train", ["experiment=best", search_path, f"paths.run_dir={tmp_path}"])
        wanted = hydra.compose("train", ["data=smoke", "seed=3", "optimizer.lr=0.1", f"paths.run_dir={tmp_path}"])
    assert OmegaConf.to_container(found, resolve=True) == OmegaConf.to_container(wanted, resolve=True)
    capsys.readouterr()
    assert main(["report", "sweep", str(tmp_path / "none")]) == 2
    assert "none: no such file or folder" in capsys.readouterr().err


@pytest.mark.parametrize("path", sorted(config_dir().glob("sweeps/*.yaml")), ids=lambda path: path.stem)
def test_c66_what_an_agent_of_weights_and_biases_types_is_hydras_form(path, tmp_path):
    sweep = yaml.safe_load(path.read_text("utf-8"))
    assert "${args_no_hyphens}" in sweep["command"] and "${args}" not in sweep["command"]
    assert sweep["metric"]["name"] != "val/loss"
    chosen = {key: each.get("values", [each.get("min")])[0] for key, each in sweep["parameters"].items()}
    filled = {
        "${env}": [],
        "${interpreter}": [],
        "${program}": [],
        "${args_no_hyphens}": [f"{k}={v}" for k, v in chosen.items()],
    }
    words = [word for each in sweep["command"] for word in filled.get(each, [each])]
    assert words[:2] == ["regnet", "train"]
    more = ["optimizer.lr=0.02", "model.network.encoder=[16,32]", "data.images=null"]
    with hydra.initialize_config_dir(str(config_dir()), version_base="1.3"):
        config = hydra.compose("train", [*words[2:], *more, f"paths.run_dir={tmp_path}"])
    assert (config.optimizer.lr, list(config.model.network.encoder), config.data.images) == (0.02, [16, 32], None)


def test_a_cluster_is_asked_through_submitit(tmp_path):
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher")
    with hydra.initialize_config_dir(str(config_dir()), version_base="1.3"):
        config = hydra.compose(
            "train", ["hydra/launcher=submitit_slurm", "hydra.launcher.gpus_per_node=1"], return_hydra_config=True
        )
    assert config.hydra.launcher._target_.endswith("SlurmLauncher")
    assert config.hydra.launcher.gpus_per_node == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launcher", "words"),
    [
        ("joblib", ["hydra.launcher.n_jobs=2"]),
        ("submitit_local", ["hydra.launcher.timeout_min=5"]),
        ("ray", ["+hydra.launcher.ray.init.num_cpus=2", "+hydra.launcher.ray.init.include_dashboard=false"]),
    ],
)
def test_a_launcher_runs_two_trials_at_a_time_and_tells_of_the_one_that_fails(launcher, words, tmp_path):
    pytest.importorskip(f"hydra_plugins.hydra_{launcher.partition('_')[0]}_launcher")
    start = [sys.executable, str(ROOT / "train.py"), "-m", *SMALL, "trainer.max_epochs=1"]
    sweep = [f"hydra/launcher={launcher}", *words, "optimizer.lr=1e-3,1e30", f"hydra.sweep.dir={tmp_path}/sweep"]
    # Ray's workers would be as nice as 15, and wait for every other test.
    ray = {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_worker_niceness": "0"}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **ray}
    done = subprocess.run([*start, *sweep], cwd=tmp_path, env=environment, capture_output=True, text=True)
    trials = read_trials(tmp_path / "sweep")
    assert states(tmp_path / "sweep") == ["done", "failed"], done.stdout + done.stderr
    assert "training stops before the weights are lost" in trials[1].error
    assert done.returncode == 2
    assert (tmp_path / "sweep" / "0" / "checkpoints" / "best.ckpt").is_file()
