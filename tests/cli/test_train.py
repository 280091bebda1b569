"""``regnet train`` from end to end, on slices of the sample brains."""

import csv
import os
import signal
import subprocess
import sys
from pathlib import Path

import nibabel
import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

from regnet.cli.main import main
from regnet.io import read_checkpoint
from regnet.training.configuration import newest_checkpoint
from regnet.training.environment import read_environment
from tests.training import tiny
from tests.training.finishing import CODES
from tests.training.slurm import fake_slurm

ROOT = Path(__file__).resolve().parents[2]
SMALL = [
    "experiment=smoke",
    "callbacks=quiet",
    "logger=csv",
    "data.spec.ndim=2",
    "data.pairs=2",
    "data.validation_pairs=1",
    "trainer.num_sanity_val_steps=0",
]
LONGER = [
    *SMALL, "trainer.max_epochs=2", "data.pairs=6", "data.batch_size=2", "callbacks.recent.every_n_train_steps=1",
    "callbacks=quiet",
]  # fmt: skip

pytestmark = [
    tiny.quiet,
    # Hydra's own use of the standard library
    pytest.mark.filterwarnings("ignore::DeprecationWarning:hydra.*"),
]


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch):
    """The command sets what belongs to its process: arguments, search path, one variable."""
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a finished run of two epochs."""
    folder = tmp_path_factory.mktemp("runs") / "finished"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", sys.argv)
        assert main(["train", *SMALL, "trainer.max_epochs=2", f"hydra.run.dir={folder}"]) == 0
    return folder


def train(*words: object) -> int:
    return main(["train", *map(str, words)])


def process(*words: object, script: bool = True) -> list[str]:
    start = [str(ROOT / "train.py")] if script else ["-m", "regnet", "train"]
    return [sys.executable, *start, *map(str, words)]


def mistake(capsys, *words: object) -> str:
    """What a refused command says: one line, status 2."""
    capsys.readouterr()
    assert train(*words) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("regnet: error: "), lines
    return lines[0]


def weights(checkpoint: Path) -> dict[str, torch.Tensor]:
    return read_checkpoint(checkpoint)["state_dict"]


def assert_same(one: Path, other: Path) -> None:
    first, second = weights(one), weights(other)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_run_leaves_checkpoints_logs_and_its_resolved_configuration(finished):
    assert sorted(path.name for path in (finished / "checkpoints").iterdir()) == ["best.ckpt", "last.ckpt"]
    assert (finished / "csv" / "version_0" / "metrics.csv").is_file()
    text = (finished / "config.yaml").read_text("utf-8")
    assert "${" not in text and "???" not in text
    assert read_environment(finished)["threads"] == torch.get_num_threads()
    about = read_checkpoint(finished / "checkpoints" / "best.ckpt")["hyper_parameters"]
    assert about["spec"]["ndim"] == 2 and about["model"]["network"]["_target_"] == "unet"


def test_a_folder_that_holds_a_run_is_refused(finished, capsys):
    assert "holds a run" in mistake(capsys, *SMALL, f"hydra.run.dir={finished}")


def test_a_moved_run_goes_on_to_where_an_unbroken_one_ends(finished, tmp_path):
    # The learning rate of `smoke` changes each epoch, so a schedule out of step would show.
    whole, moved = tmp_path / "whole", tmp_path / "moved"
    assert train(*SMALL, "trainer.max_epochs=4", f"hydra.run.dir={whole}") == 0
    subprocess.run(["cp", "-r", finished, moved], check=True)
    assert train("--resume", moved, "trainer.max_epochs=4") == 0
    assert_same(whole / "checkpoints" / "last.ckpt", moved / "checkpoints" / "last.ckpt")
    resumed = tmp_path / "resumed"
    last = finished / "checkpoints" / "last.ckpt"
    assert train(*SMALL, "trainer.max_epochs=4", f"ckpt_path={last}", f"hydra.run.dir={resumed}") == 0
    assert_same(whole / "checkpoints" / "last.ckpt", resumed / "checkpoints" / "last.ckpt")


def test_a_finished_run_is_left_as_it_is(finished):
    before = {path: path.read_bytes() for path in (finished / "checkpoints").iterdir()}
    assert train("--resume", finished) == 0
    assert {path: path.read_bytes() for path in (finished / "checkpoints").iterdir()} == before


def send(name: str, after: int) -> list[str]:
    """Words that have the run send itself a signal in the batch after so many steps."""
    return [
        "+callbacks.send._target_=tests.training.send.Send", f"+callbacks.send.signal_name={name}",
        f"+callbacks.send.after={after}",
    ]  # fmt: skip


def curve(folder: Path) -> dict[str, str]:
    """Step -> loss, of all parts of a run; what was computed twice must be the same."""
    losses: dict[str, str] = {}
    for part in sorted((folder / "csv").glob("version_*/metrics.csv")):
        for row in csv.DictReader(part.read_text("utf-8").splitlines()):
            if row["step/loss"]:
                assert losses.setdefault(row["step"], row["step/loss"]) == row["step/loss"]
    return losses


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """The folder of a run of two epochs of three batches, of two pairs each, with averaged weights."""
    folder = tmp_path_factory.mktemp("unbroken")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", sys.argv)
        assert main(["train", *LONGER, f"hydra.run.dir={folder}"]) == 0
    return folder


@pytest.mark.slow
def test_a_run_killed_in_the_middle_of_an_epoch_goes_on_to_the_same_losses_and_weights(unbroken, tmp_path):
    words = [*LONGER, "data.num_workers=1", *send("SIGKILL", 4), f"hydra.run.dir={tmp_path}"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    killed = subprocess.run(process(*words), cwd=tmp_path, env=environment, capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    assert read_checkpoint(newest_checkpoint(tmp_path))["global_step"] == 4
    config = OmegaConf.load(tmp_path / "config.yaml")
    config.callbacks.send = None
    OmegaConf.save(config, tmp_path / "config.yaml")
    subprocess.run(process("--resume", tmp_path, script=False), check=True, cwd=tmp_path, capture_output=True)
    assert_same(unbroken / "checkpoints" / "last.ckpt", tmp_path / "checkpoints" / "last.ckpt")
    assert curve(tmp_path) == curve(unbroken)


def test_ctrl_c_says_the_command_that_goes_on(unbroken, tmp_path, capsys):
    folder = tmp_path / "a b"
    with pytest.raises(SystemExit) as stop:
        train(*LONGER, *send("SIGINT", 4), f"hydra.run.dir='{folder}'")
    assert stop.value.code == 130
    assert f"regnet: interrupted; go on with: regnet train --resume '{folder}'" in capsys.readouterr().err
    assert train("--resume", folder) == 0
    assert_same(unbroken / "checkpoints" / "last.ckpt", folder / "checkpoints" / "last.ckpt")


def test_the_same_command_goes_on_when_slurm_starts_the_job_again(unbroken, tmp_path, monkeypatch):
    told = fake_slurm(tmp_path / "slurm", monkeypatch)
    words = [*LONGER, *send("SIGUSR1", 1), f"hydra.run.dir={tmp_path}/run"]
    with pytest.raises(SystemExit):
        train(*words)
    assert told.read_text("utf-8") == "requeue 7\n"
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    assert train(*words) == 0
    assert_same(unbroken / "checkpoints" / "last.ckpt", tmp_path / "run" / "checkpoints" / "last.ckpt")
    assert curve(tmp_path / "run") == curve(unbroken)


def test_a_damaged_last_checkpoint_is_passed_over(finished, tmp_path, capsys):
    folder = tmp_path / "run"
    subprocess.run(["cp", "-r", finished, folder], check=True)
    last = folder / "checkpoints" / "last.ckpt"
    last.write_bytes(last.read_bytes()[:2000])
    assert "not a regnet checkpoint" in mistake(capsys, *SMALL, f"ckpt_path={last}", f"hydra.run.dir={tmp_path}/new")
    assert train("--resume", folder, "trainer.max_epochs=3") == 0
    assert weights(last)


def test_a_grid_runs_one_folder_a_job(tmp_path):
    assert train("-m", *SMALL, "trainer.max_epochs=1", "optimizer.lr=1e-3,1e-4", f"hydra.sweep.dir={tmp_path}") == 0
    rates = [OmegaConf.load(tmp_path / job / "config.yaml").optimizer.lr for job in ("0", "1")]
    assert rates == [1e-3, 1e-4]
    assert all((tmp_path / job / "checkpoints" / "best.ckpt").is_file() for job in ("0", "1"))


def test_the_objective_comes_back(tmp_path, monkeypatch):
    import regnet.cli.train as command

    seen = []
    monkeypatch.setattr(command, "_job", lambda config: seen.append(command.train(config)))
    assert train(*SMALL, "trainer.max_epochs=1", f"hydra.run.dir={tmp_path}") == 0
    content = read_checkpoint(tmp_path / "checkpoints" / "best.ckpt")
    scores = [state["best_model_score"] for state in content["callbacks"].values() if state.get("monitor")]
    assert seen == [pytest.approx(float(scores[0]))]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["optmi.lr=1e-4"], "unknown key 'optmi.lr': did you mean 'optimizer.lr'?"),
        (["optimizer=sgdd"], "there is no 'optimizer/sgdd'"),
        (["optimizer=adamm"], "there is no 'optimizer/adamm': did you mean 'optimizer/adam"),
        (["modle=unet_velocity"], "unknown key 'modle': did you mean 'model'?"),
        (["trainer.max_epoch=3"], "unknown key 'trainer.max_epoch': did you mean 'trainer.max_epochs'?"),
        (["loss.terms.similarity.level=1"], "put + in front to add it: +loss.terms.similarity.level=VALUE"),
        (["loss.terms.similarity={_target_: regnet.losses.NCC, level: 1}"], "+loss.terms.similarity.level=VALUE"),
        (["loss.terms.similarity._target_=regnet.losses.LNCCC"], "did you mean 'regnet.losses.LNCC'?"),
        (["loss.terms.smoothness.weight=abc"], "Diffusion: weight must be a finite number: got 'abc'"),
        (["loss.terms.smoothness.weight=nan"], "Diffusion: weight must be a finite number: got nan"),
        (["scheduler=plateau", "scheduler.patence=3"], "did you mean 'scheduler.patience'?"),
        (["model.network.encodr=[4]"], "did you mean 'model.network.encoder'?"),
        (["+model.network.encodr=[4]"], "has no argument 'encodr': did you mean 'encoder'?"),
        (["+loss.terms.similarity.windw=3"], "did you mean 'loss.terms.similarity.window'?"),
        (["+optimizer.lrr=3"], "did you mean 'optimizer.lr'?"),
        (["+optmizer.lr=3"], "unknown key 'optmizer': did you mean 'optimizer'?"),
        (["trainer.max_epochs"], "trainer.max_epochs"),
        (["optimizer.lr=-1"], "optimizer or scheduler: Invalid learning rate"),
        (["optimizer.lr=abc"], "optimizer or scheduler: "),
        (["seed=null"], "seed: "),
        (["model.network.encoder=3"], "model: "),
        (["objective=val/dicee"], "val/dicee"),
        (["ckpt_path=missing.ckpt"], "missing.ckpt: no such checkpoint"),
        (["--resume", "nowhere"], "nowhere: not the folder of a run"),
        (["--resume"], "needs the folder of a run"),
        (["data=pairs", "data.pairs=missing.csv"], "missing.csv"),
        (["data=pairs"], "data.pairs"),
        (["-m", "test=true", "seed=1,2"], "never under -m"),
    ],
)
def test_a_mistake_is_told_in_one_line(words, said, tmp_path, capsys):
    small = SMALL if words[0] != "--resume" and "data=pairs" not in words else []
    where = [f"hydra.run.dir={tmp_path}/run", f"hydra.sweep.dir={tmp_path}/grid"] if words[0] != "--resume" else []
    assert said in mistake(capsys, *words, *small, *where)


@pytest.mark.parametrize("name", ["a b", "a,b", "a(1)", "数据", "it's", "100%"])
@pytest.mark.parametrize("quotes", [True, False])
def test_awkward_paths_are_taken_as_they_are(name, quotes, tmp_path, capsys):
    table = tmp_path / name / "pairs.csv"
    value = str(table).replace("'", "\\'") if quotes else str(table)
    said = mistake(capsys, "data=pairs", f"data.pairs='{value}'" if quotes else f"data.pairs={value}", "logger=none",
                   f"hydra.run.dir={tmp_path}/run")  # fmt: skip
    if name == "a,b" and not quotes:
        assert f"data.pairs='{table}'" in said  # how to write it
    else:
        assert f"{table}: cannot be read (No such file" in said


def test_a_job_that_fails_is_told_to_its_logger(tmp_path, capsys):
    CODES.clear()
    words = [*SMALL, "trainer.max_epochs=1", "+logger.book._target_=tests.training.finishing.Finishing"]
    assert train(*words, f"hydra.run.dir={tmp_path}/well") == 0
    grid = ["-m", "optimizer.lr=1e30,1e-3", f"hydra.sweep.dir={tmp_path}/grid"]
    assert "training stops before the weights are lost" in mistake(capsys, *grid, *words)
    assert CODES[:2] == [0, 1]


def test_an_experiment_file_with_a_misspelt_block_is_refused(tmp_path, capsys):
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text("# @package _global_\noptmizer:\n  lr: 1e-4\n")
    said = mistake(capsys, "--config-dir", tmp_path, "experiment=mine", f"hydra.run.dir={tmp_path}/run")
    assert "unknown key 'optmizer': did you mean 'optimizer'?" in said


def test_a_checkpoint_of_another_model_is_refused_by_what_differs(finished, tmp_path, capsys):
    last = finished / "checkpoints" / "last.ckpt"
    said = mistake(capsys, *SMALL, "model.network.encoder=[4,8,16]", f"ckpt_path={last}", f"hydra.run.dir={tmp_path}")
    assert "trained with model.network.encoder=[4, 8, 8], but this run has [4, 8, 16]" in said


def test_a_network_from_the_users_folder_trains(tmp_path):
    (tmp_path / "mynets.py").write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self, ndim, width):\n"
        "        super().__init__()\n"
        "        kind = getattr(torch.nn, f'Conv{ndim}d')\n"
        "        self.layers = torch.nn.Sequential(kind(2, width, 3, padding=1), kind(width, ndim, 3, padding=1))\n"
        "    def forward(self, moving, fixed):\n"
        "        return self.layers(torch.cat([moving, fixed], 1))\n"
    )
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_text("_target_: mynets.Net\nndim: ${data.spec.ndim}\nwidth: 4\n")
    words = ["model=mine", "data=smoke", "trainer.max_epochs=1", *SMALL[1:]]
    # Hydra's flags may stand anywhere.
    assert train(*words, "--config-dir", tmp_path, f"hydra.run.dir={tmp_path}/run") == 0
    about = read_checkpoint(tmp_path / "run" / "checkpoints" / "best.ckpt")["hyper_parameters"]
    assert about["model"] == {"_target_": "mynets.Net", "ndim": 2, "width": 4}


@pytest.mark.slow
def test_weights_and_biases_works_offline_and_a_grid_makes_one_run_a_job(tmp_path):
    pytest.importorskip("wandb")
    words = [word for word in SMALL if not word.startswith("logger")]
    grid = ["optimizer.lr=1e-3,1e-4", f"hydra.sweep.dir={tmp_path}", "logger=wandb", "trainer.max_epochs=1"]
    environment = {**os.environ, "WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DATA_DIR": str(tmp_path)}
    subprocess.run(process("-m", *words, *grid), check=True, cwd=tmp_path, env=environment, capture_output=True)
    runs = [list((tmp_path / job / "wandb").glob("offline-run-*")) for job in ("0", "1")]
    assert [len(each) for each in runs] == [1, 1]
    assert list(runs[0][0].rglob("*.png"))
    for (run,), rate in zip(runs, (b"0.001", b"0.0001"), strict=True):
        (record,) = run.glob("*.wandb")
        kept = (b"config.yaml", b"checkpoints/best.ckpt", b"example/moved.nii.gz", b"train/weighted/smoothness", rate)
        assert not [what for what in kept if what not in record.read_bytes()]


def _table(folder: Path, spoil: bool = False) -> Path:
    """Two 3-D pairs of different shapes, spacings and orientations."""
    rng = np.random.default_rng(0)
    for name, shape, spacing, flip in [
        ("a", (20, 24, 18), 8, 1),
        ("b", (17, 21, 23), 9, -1),
        ("c", (22, 19, 20), 7.5, 1),
    ]:
        x = np.stack(np.meshgrid(*[np.linspace(-1, 1, n) for n in shape], indexing="ij"))
        image = np.where((x**2).sum(0) < 0.6, 50 + 100 * (np.sin(5 * x).sum(0) + 0.1 * rng.random(shape)), 0)
        if spoil and name == "c":
            image[9, 9, 9] = np.nan
        affine = np.diag([flip * spacing, spacing, spacing, 1.0])
        affine[:3, 3] = -affine[:3, :3] @ (np.array(shape) - 1) / 2
        nibabel.save(nibabel.Nifti1Image(image.astype(np.float32), affine), folder / f"{name}.nii.gz")
    table = folder / "pairs.csv"
    table.write_text(
        "id,moving,fixed,split\n1,a.nii.gz,b.nii.gz,train\n2,b.nii.gz,c.nii.gz,train\n3,a.nii.gz,c.nii.gz,val\n"
    )
    return table


def test_own_images_of_any_shape_spacing_and_orientation_train(tmp_path):
    words = [word for word in SMALL if not word.startswith(("data.", "experiment"))]
    words += ["data=pairs", f"data.pairs={_table(tmp_path)}", "data.spec.spacing=10", "trainer.max_epochs=1"]
    assert train(*words, f"hydra.run.dir={tmp_path}/run") == 0
    assert weights(tmp_path / "run" / "checkpoints" / "best.ckpt")


@pytest.mark.parametrize("chdir", ["true", "false"])
def test_paths_are_relative_to_where_the_user_stands(chdir, tmp_path, monkeypatch):
    (tmp_path / "images").mkdir()
    (tmp_path / "elsewhere").mkdir()
    _table(tmp_path / "images")
    monkeypatch.chdir(tmp_path / "elsewhere")
    words = [word for word in SMALL if not word.startswith(("data.", "experiment"))]
    words += ["data=pairs", "data.pairs=../images/pairs.csv", "data.spec.spacing=10", "trainer.fast_dev_run=true"]
    assert train(*words, f"hydra.job.chdir={chdir}", "hydra.run.dir=../run") == 0
    assert not list((tmp_path / "elsewhere").iterdir())
    assert (tmp_path / "run" / "config.yaml").is_file()


@pytest.mark.parametrize("workers", [0, 1])
def test_a_nan_voxel_in_a_training_image_is_told_by_file(tmp_path, capsys, workers):
    words = [word for word in SMALL if not word.startswith(("data.", "experiment"))]
    words += ["data=pairs", f"data.pairs={_table(tmp_path, spoil=True)}", f"data.num_workers={workers}"]
    assert "c.nii.gz" in mistake(capsys, *words, f"hydra.run.dir={tmp_path}/run")
