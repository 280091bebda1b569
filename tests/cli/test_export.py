"""A trained network goes to others whole, and nothing of ours with it that is no concern of theirs."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from regnet.data.spec import InputSpec
from regnet.inference import load_model
from regnet.models import build
from tests.cli.command import refused, regnet
from tests.inference.networks import checkpoint, small_model, write_checkpoint

SPEC = InputSpec(ndim=3, spacing=2.0, modality="T2")


def head_of(path: Path) -> dict[str, Any]:
    """The JSON that a model file holds about its weights, read without safetensors."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["regnet"])


def write_run(folder: Path) -> Path:
    """A run as training leaves it, averaged weights and paths included."""
    content = checkpoint(SPEC, push=0.5)[1]
    content |= {
        "epoch": 3,
        "optimizer_states": [{"state": {0: torch.ones(3)}}],
        "current_model_state": {name: value + 1 for name, value in content["state_dict"].items()},
        "callbacks": {"Checkpoint": {"dirpath": "/home/eva/study"}},
    }
    (folder / "checkpoints").mkdir(parents=True)
    torch.save(content, folder / "checkpoints" / "best.ckpt")
    (folder / "csv" / "version_0").mkdir(parents=True)
    table = "epoch,step,train/loss,val/dice,val/loss\n2,8,,0.5,0.9\n3,12,0.7,,\n3,12,,0.75,0.6\n4,16,,0.8,0.5\n"
    (folder / "csv" / "version_0" / "metrics.csv").write_text(table, encoding="utf-8")
    return folder


def test_a_model_file_holds_weights_contract_and_validation_and_no_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, out = write_run(tmp_path / "run"), tmp_path / "m.safetensors"
    assert regnet("export", run, "--out", out) == 0
    printed = capsys.readouterr().out
    loaded, trained = load_model(out), load_model(run)
    assert loaded.spec == SPEC
    assert f"sha256 {loaded.sha256[:16]}" in printed
    for name, value in trained.model.state_dict().items():  # those of `state_dict`, where averages are
        torch.testing.assert_close(loaded.model.state_dict()[name], value, rtol=0, atol=0)
    about = head_of(out)
    assert set(about) == {"model", "spec", "regnet", "epoch", "metrics"}
    assert about["metrics"] == {"val/dice": 0.75, "val/loss": 0.6}
    assert b"eva" not in out.read_bytes()
    assert str(tmp_path).encode() not in out.read_bytes()
    text = (tmp_path / "m.md").read_text(encoding="utf-8")
    assert loaded.sha256 in text
    assert "val/dice: 0.75" in text
    assert "modality: T2" in text
    assert regnet("export", out, "--out", tmp_path / "again.safetensors") == 0
    assert (tmp_path / "again.safetensors").read_bytes() == out.read_bytes()


def test_what_cannot_be_exported_or_loaded_is_refused_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_checkpoint(tmp_path / "a.ckpt", SPEC)
    out = tmp_path / "m.safetensors"
    assert "is written as .safetensors" in refused(capsys, "export", file, "--out", tmp_path / "m.pt")
    assert "--shape" in refused(capsys, "export", file, "--out", tmp_path / "m.onnx", "--to", "onnx")
    assert "no such checkpoint" in refused(capsys, "export", tmp_path / "no.ckpt", "--out", out)
    assert "no checkpoint in this folder" in refused(capsys, "export", tmp_path, "--out", out)
    assert not list(tmp_path.glob("m.*"))
    assert regnet("export", file, "--out", out) == 0
    assert "exists already" in refused(capsys, "export", file, "--out", out)
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(out.read_bytes()[:-100])
    other = tmp_path / "other.safetensors"
    save_file({"weight": torch.ones(2)}, other)
    for path, told in (
        (damaged, "damaged"),
        (other, "without a regnet model"),
        (tmp_path / "n.onnx", "other programs"),
    ):
        assert told in refused(capsys, "export", path, "--out", tmp_path / "z.safetensors")


def images(shape: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    noise = torch.rand(2, 1, 1, *shape, generator=torch.Generator().manual_seed(1))
    return noise[0], noise[1]


@pytest.mark.parametrize("head", ["half", "spline"])
def test_the_network_alone_gives_the_same_displacement_without_regnet(
    tmp_path: Path, head: str, capsys: pytest.CaptureFixture[str]
) -> None:
    runtime = pytest.importorskip("onnxruntime")
    config = small_model(2, head=head)
    config["head"] |= {"steps": 2} if head == "half" else {}
    torch.manual_seed(0)
    weights = {f"model.{name}": value for name, value in build(config).state_dict().items()}
    for name, value in weights.items():
        value.normal_(std=0.5 if name.startswith("model.head") else 0.3)
    about = {"model": config, "spec": InputSpec(ndim=2).to_dict(), "regnet": "0.1.0"}
    file, shape = tmp_path / "a.ckpt", (9, 14)
    torch.save({"state_dict": weights, "hyper_parameters": about}, file)
    words = ("--shape", *shape)
    assert regnet("export", file, "--out", tmp_path / "m.onnx", "--to", "onnx", *words) == 0
    assert "onnxruntime gives the same displacement" in capsys.readouterr().out
    assert regnet("export", file, "--out", tmp_path / "m.pt2", "--to", "torch", *words) == 0
    moving, fixed = images(shape)
    want = load_model(file).model.fields(moving, fixed)["displacement"]
    assert want.abs().max() > 0.1
    program = torch.export.load(tmp_path / "m.pt2")
    assert not [node for node in program.graph.nodes if "regnet" in str(node.target)]
    torch.testing.assert_close(program.module()(moving, fixed), want, rtol=1e-4, atol=1e-4)
    session = runtime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    (got,) = session.run(["displacement"], {"moving": moving.numpy(), "fixed": fixed.numpy()})
    torch.testing.assert_close(torch.from_numpy(got), want, rtol=1e-4, atol=1e-4)
