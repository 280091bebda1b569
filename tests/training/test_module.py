"""The LightningModule in a plain Trainer, without Hydra."""

import csv
import hashlib
from functools import partial

import pytest
import torch
from torch.optim.lr_scheduler import MultiStepLR, ReduceLROnPlateau

import regnet
from regnet.errors import InputError
from regnet.io import read_checkpoint
from regnet.losses import LNCC, GradICON, Objective
from regnet.models import build
from regnet.training.module import RegistrationModule
from tests.training import tiny

pytestmark = tiny.quiet


def _rows(folder, column, version=0):
    with (folder / "csv" / f"version_{version}" / "metrics.csv").open() as file:
        return [row for row in csv.DictReader(file) if row.get(column)]


def _hashes(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (folder / "checkpoints").iterdir()}


def test_a_plain_trainer_learns_and_logs_every_term(tmp_path):
    module = tiny.module(lr=3e-3)
    tiny.trainer(tmp_path, 12).fit(module, tiny.loader(), tiny.loader())
    rows = _rows(tmp_path, "val/loss")
    first, last = ({key: float(value) for key, value in row.items() if value} for row in (rows[0], rows[-1]))
    for name in ("loss", "similarity", "smoothness", "dice", "epe", "folding"):
        assert f"val/{name}" in last
    assert last["val/loss"] < 0.8 * first["val/loss"]
    assert last["val/dice"] > first["val/dice"]
    assert last["val/epe"] < first["val/epe"]
    row = _rows(tmp_path, "train/loss")[-1]
    assert {"train/loss", "train/similarity", "train/lr"} <= row.keys()
    for name, term in module.loss.terms.items():
        assert float(row[f"train/weighted/{name}"]) == pytest.approx(term.weight * float(row[f"train/{name}"]))


def test_a_run_tells_its_terms_and_asks_for_the_pair_exchanged_where_one_needs_it(tmp_path, capsys):
    module = tiny.module()
    terms = {"similarity": LNCC(window=5, both_directions=True, level=1), "consistency": GradICON(weight=0.1)}
    module.loss = Objective(terms)
    calls = []
    module.model.network.register_forward_pre_hook(lambda _, pair: calls.append(pair))
    tiny.trainer(tmp_path, 1, num_sanity_val_steps=0).fit(module, tiny.loader(), tiny.loader())
    told = capsys.readouterr().out
    assert "loss.terms.consistency: GradICON(weight=0.1, on='displacement') [none: mm per mm]" in told
    assert len(calls) == 2 * 2 * len(tiny.loader())  # twice a pair, in training and in validation
    assert torch.equal(calls[0][0], calls[1][1]) and torch.equal(calls[0][1], calls[1][0])
    assert float(_rows(tmp_path, "train/consistency")[-1]["train/consistency"]) > 0


def test_a_term_with_the_name_of_a_figure_of_the_log_is_refused_before_anything_is_logged():
    module = tiny.module()
    batch = next(iter(tiny.loader()))
    with pytest.raises(ValueError, match=r"loss\.terms\.dice: a loss term cannot be called so"):
        RegistrationModule(module.model, Objective({"dice": LNCC(window=5)}))

    class Mine(torch.nn.Module):
        def forward(self, outputs, batch):
            total = (outputs["moved"] - batch["fixed"]).square().mean()
            return total, {"loss": 2 * total}

    with pytest.raises(ValueError, match=r"loss\.terms\.loss: a loss term cannot be called so"):
        RegistrationModule(module.model, Mine()).judge(batch, None)


def test_a_checkpoint_alone_rebuilds_the_model(tmp_path):
    module = tiny.module()
    tiny.trainer(tmp_path, 1).fit(module, tiny.loader(), tiny.loader())
    content = read_checkpoint(tmp_path / "checkpoints" / "best.ckpt")  # refuses all but tensors and plain values
    about = content["hyper_parameters"]
    assert about["regnet"] == regnet.__version__ and about["spec"] == {"ndim": 2}
    assert str(tmp_path) not in str(about)
    model = build(about["model"])
    weights = {name.removeprefix("model."): value for name, value in content["state_dict"].items()}
    model.load_state_dict(weights)
    moving, fixed = torch.rand(2, 1, 1, 13, 22)
    torch.testing.assert_close(model(moving, fixed)["moved"], module(moving, fixed)["moved"])


@pytest.mark.parametrize("fast_dev_run", [False, True])
def test_a_nan_voxel_stops_the_run_by_name_and_leaves_the_last_checkpoint(tmp_path, fast_dev_run):
    module = tiny.module()
    tiny.trainer(tmp_path, 1).fit(module, tiny.loader(), tiny.loader())
    last = tmp_path / "checkpoints" / "last.ckpt"
    before = _hashes(tmp_path)
    poisoned = tiny.trainer(tmp_path, 3, num_sanity_val_steps=0, fast_dev_run=fast_dev_run)
    index = 0 if fast_dev_run else 1
    with pytest.raises(InputError, match=f"pair{index} is nan; training stops") as caught:
        poisoned.fit(module, tiny.loader(poison=index), tiny.loader(), ckpt_path=None if fast_dev_run else last)
    assert "\n" not in str(caught.value)
    batch = torch.load(tmp_path / "nan_batch.pt", weights_only=True)
    assert batch["id"] == [f"pair{index}"] and batch["fixed"].isnan().any()
    assert all(parameter.isfinite().all() for parameter in module.parameters())
    assert _hashes(tmp_path) == before and read_checkpoint(last)


def test_a_gradient_that_is_not_finite_never_reaches_the_weights(tmp_path):
    module = tiny.module()
    module.model.head.field.convolution.bias.register_hook(lambda gradient: gradient / 0)
    with pytest.raises(InputError, match="gradient is not finite"):
        tiny.trainer(tmp_path, 1).fit(module, tiny.loader(), tiny.loader())
    assert torch.load(tmp_path / "nan_batch.pt", weights_only=True)["id"] == ["pair0"]
    assert all(parameter.isfinite().all() for parameter in module.parameters())


def test_a_resumed_schedule_goes_on_where_it_stopped(tmp_path):
    schedule = partial(MultiStepLR, milestones=[2, 4], gamma=0.1)
    whole, first, second = tmp_path / "whole", tmp_path / "parts", tmp_path / "parts"
    unbroken = tiny.module(schedule)
    tiny.trainer(whole, 6).fit(unbroken, tiny.loader(), tiny.loader())
    tiny.trainer(first, 3).fit(tiny.module(schedule), tiny.loader(), tiny.loader())
    last = first / "checkpoints" / "last.ckpt"
    resumed = tiny.module(schedule)
    tiny.trainer(second, 6).fit(resumed, tiny.loader(), tiny.loader(), ckpt_path=last)

    rates = [float(row["train/lr"]) for row in _rows(whole, "train/lr")]
    assert rates == pytest.approx([1e-3, 1e-3, 1e-4, 1e-4, 1e-5, 1e-5], rel=1e-5)
    parts = _rows(first, "train/lr") + _rows(second, "train/lr", version=1)
    assert [float(row["train/lr"]) for row in parts] == rates
    assert [int(row["epoch"]) for row in parts] == list(range(6))
    for one, other in zip(unbroken.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, other)

    before = _hashes(second)
    tiny.trainer(second, 6).fit(tiny.module(schedule), tiny.loader(), tiny.loader(), ckpt_path=last)
    assert _hashes(second) == before


def test_a_plateau_is_not_forgotten_by_a_resumed_run(tmp_path):
    schedule = partial(ReduceLROnPlateau, factor=0.5, patience=1, threshold=10.0, threshold_mode="abs")
    unbroken, resumed = tiny.module(schedule), tiny.module(schedule)
    tiny.trainer(tmp_path / "whole", 6, num_sanity_val_steps=0).fit(unbroken, tiny.loader(), tiny.loader())
    tiny.trainer(tmp_path / "parts", 2).fit(tiny.module(schedule), tiny.loader(), tiny.loader())
    last = tmp_path / "parts" / "checkpoints" / "last.ckpt"
    tiny.trainer(tmp_path / "parts", 6).fit(resumed, tiny.loader(), tiny.loader(), ckpt_path=last)
    rates = [float(row["train/lr"]) for row in _rows(tmp_path / "whole", "train/lr")]
    assert rates[-1] < rates[0]
    for one, other in zip(unbroken.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("steps", [0, 2])
def test_the_sanity_check_leaves_no_trace(tmp_path, steps):
    seen = []

    class Watched(tiny.RegistrationModule):
        def on_train_start(self):
            seen.extend((tmp_path / "checkpoints").glob("*"))

    module = tiny.module()
    module.__class__ = Watched
    tiny.trainer(tmp_path, 1, num_sanity_val_steps=steps).fit(module, tiny.loader(), tiny.loader())
    rows = _rows(tmp_path, "val/loss")
    assert len(rows) == 1 and int(rows[0]["step"]) > 0
    assert seen == []


def test_a_monitored_value_with_a_slash_makes_no_folder(tmp_path):
    trainer = tiny.trainer(tmp_path, 2, profiler="advanced")
    trainer.fit(tiny.module(), tiny.loader(), tiny.loader())
    assert sorted(path.name for path in (tmp_path / "checkpoints").rglob("*")) == ["best.ckpt", "last.ckpt"]
    assert trainer.checkpoint_callback.best_model_path == str(tmp_path / "checkpoints" / "best.ckpt")
