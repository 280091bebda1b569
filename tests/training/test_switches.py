"""Every switch for speed is a value of the configuration, and changes no more than it says."""

import pytest
import torch

from regnet.models import build
from regnet.training import experiment
from tests.cli.command import refused, regnet
from tests.models.configured import NAMES, configured

SMALL = (
    *("data=smoke", "data.spec.ndim=2", "data.pairs=2", "data.validation_pairs=1", "trainer.max_epochs=1"),
    *("callbacks=quiet", "logger=none", "trainer.num_sanity_val_steps=0"),
)


def _answer(name, **switches):
    """Displacement and gradients of a model, a switch of its network set."""
    torch.manual_seed(0)
    config = configured(name, 2)
    config["network"] |= switches
    model = build(config)
    moving, fixed = torch.rand(2, 2, 1, 37, 26, generator=torch.Generator().manual_seed(1))
    flow = model(moving, fixed)["displacement"]
    flow.square().sum().backward()
    return [flow.detach(), *(parameter.grad for parameter in model.parameters() if parameter.grad is not None)]


@pytest.mark.parametrize("name", [name for name in NAMES if "checkpointing" in configured(name, 2).get("network", {})])
@pytest.mark.parametrize("switch", [{"checkpointing": True}, {"channels_last": False}])
def test_the_layout_and_what_is_kept_change_no_number(name, switch):
    for ours, plain in zip(_answer(name, **switch), _answer(name), strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-5 * float(plain.abs().max()))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*Dynamo.*", "ignore:The .grad attribute of a Tensor")  # torch.compile's own
def test_all_switches_together_train(tmp_path, capsys):
    switches = ["model.network.checkpointing=true", "model.network.channels_last=false", "trainer.precision=bf16-mixed"]
    assert regnet("train", *SMALL, *switches, "compile=aot_eager", f"hydra.run.dir={tmp_path}") == 0
    state = torch.load(tmp_path / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]
    assert not any("_orig_mod" in key for key in state)  # a compiled model's checkpoint is a plain one's
    assert all(value.dtype == torch.float32 and value.isfinite().all() for value in state.values())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*Dynamo.*", "ignore:The .grad attribute of a Tensor")  # torch.compile's own
def test_a_compiled_model_stays_in_one_piece_for_the_whole_training(tmp_path, monkeypatch):
    sizes, runs = [], []

    def backend(graph, inputs):
        sizes.append(len(graph.graph.nodes))
        return lambda *values: runs.append(len(sizes)) or graph.forward(*values)

    monkeypatch.setattr(experiment, "_backend", lambda name: backend)
    words = [word for word in SMALL if not word.startswith("callbacks")]
    assert regnet("train", *words, "compile=ours", f"hydra.run.dir={tmp_path}") == 0
    assert len(set(sizes)) == 1  # the whole, with gradients, and again without: nothing is cut in pieces
    assert len(runs) >= 3  # two steps and a validation


def test_a_backend_that_is_none_is_told(tmp_path, capsys):
    line = refused(capsys, "train", *SMALL, "compile=fast", f"hydra.run.dir={tmp_path}")
    assert "compile: no backend of torch.compile is called 'fast'" in line and "inductor" in line
