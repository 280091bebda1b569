"""Checkpoints come back as the network that was saved, or with one line that names the file."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from regnet.data.spec import InputSpec
from regnet.errors import InputError
from regnet.inference import load_model

from .networks import checkpoint, small_model


def test_weights_and_contract_come_back(tmp_path: Path) -> None:
    model, content = checkpoint(InputSpec(ndim=2, spacing=2.0))
    torch.save(content, tmp_path / "a.ckpt")
    loaded = load_model(tmp_path / "a.ckpt")
    assert loaded.spec == InputSpec(ndim=2, spacing=2.0)
    assert not loaded.model.training
    assert not any(parameter.requires_grad for parameter in loaded.model.parameters())
    for name, value in model.state_dict().items():
        torch.testing.assert_close(loaded.model.state_dict()[name], value, atol=0, rtol=0)


def test_of_a_run_the_best_checkpoint_is_taken_and_the_last_one_without_it(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "checkpoints"
    folder.mkdir(parents=True)
    for age, name in enumerate(("best-epoch=3.ckpt", "best-epoch=7.ckpt", "last.ckpt")):
        torch.save(checkpoint(InputSpec(ndim=2))[1], folder / name)
        os.utime(folder / name, (1000 + age, 1000 + age))
    assert load_model(tmp_path / "run").path.name == "best-epoch=7.ckpt"
    for best in folder.glob("best*"):
        best.unlink()
    assert load_model(tmp_path / "run").path.name == "last.ckpt"
    (folder / "last.ckpt").unlink()
    with pytest.raises(InputError, match=r"run: no checkpoint in this folder"):
        load_model(tmp_path / "run")


def _without(content: dict[str, Any], *path: str) -> dict[str, Any]:
    first, *rest = path
    kept = {key: value for key, value in content.items() if key != first}
    return kept if not rest else {**kept, first: _without(content[first], *rest)}


@pytest.mark.parametrize(
    "path", [("state_dict",), ("hyper_parameters",), ("hyper_parameters", "model"), ("hyper_parameters", "spec")]
)
def test_a_checkpoint_of_something_else_is_named(tmp_path: Path, path: tuple[str, ...]) -> None:
    file = tmp_path / "other.ckpt"
    torch.save(_without(checkpoint(InputSpec(ndim=2))[1], *path), file)
    with pytest.raises(InputError, match=r"other\.ckpt: not a regnet checkpoint"):
        load_model(file)


def test_weights_of_another_network_are_named(tmp_path: Path) -> None:
    file = tmp_path / "mixed.ckpt"
    content = checkpoint(InputSpec(ndim=2))[1]
    content["hyper_parameters"]["model"] = small_model(2, width=6)
    torch.save(content, file)
    with pytest.raises(InputError, match=r"mixed\.ckpt: its weights do not fit its network") as caught:
        load_model(file)
    assert "\n" not in str(caught.value)


def test_a_network_of_another_package_needs_trust(tmp_path: Path) -> None:
    file = tmp_path / "theirs.ckpt"
    content = checkpoint(InputSpec(ndim=2))[1]
    content["hyper_parameters"]["model"] = {"_target_": "theirs.Net"}
    torch.save(content, file)
    with pytest.raises(InputError, match=r"theirs\.ckpt: .*trust"):
        load_model(file)


def test_a_missing_checkpoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.ckpt"):
        load_model(tmp_path / "nowhere.ckpt")
