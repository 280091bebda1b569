"""Every configuration file composes, names only arguments that exist, and makes its object."""

import functools
import re
from pathlib import Path

import hydra
import lightning.pytorch as pl
import pytest
import torch
from hydra.utils import get_object, instantiate
from omegaconf import OmegaConf

from regnet.config import config_dir
from regnet.models import Model, build, describe
from regnet.training import RegistrationModule
from regnet.training.configuration import KEYS, check_keys
from regnet.training.weights import freeze

FILES = sorted(
    (path.parent.name, path.stem)
    for path in config_dir().glob("*/*.yaml")
    if path.parent.name not in ("hparams_search", "sweeps")
)
# What a data configuration cannot know.
GIVEN = {name: ["data.pairs=pairs.csv"] for name in ("pairs", "augmented", "oasis", "lumir", "nlst")}
GIVEN |= {name: ["data.pairs.root=study"] for name in ("folder", "bids")}
GIVEN |= {"ixi": ["data.pairs.root=study", "data.atlas=atlas.nii.gz"]}


def compose(tmp_path, *overrides):
    """A resolved configuration, as training gets it."""
    with hydra.initialize_config_dir(str(config_dir()), version_base="1.3"):
        config = hydra.compose("train", [f"paths.run_dir={tmp_path}", *overrides])
    return OmegaConf.to_container(config, resolve=True)


def test_the_default_has_the_known_keys(tmp_path):
    assert set(compose(tmp_path)) == set(KEYS)


@pytest.mark.parametrize(("group", "name"), FILES)
def test_every_file_composes_with_known_arguments_and_makes_its_object(group, name, tmp_path):
    config = compose(tmp_path, f"{group}={name}", *GIVEN.get(name, []))
    if name == "augmented":
        pytest.importorskip("cornucopia")
    check_keys(config, get_object)
    block = config.get(group)
    if group == "model":
        assert isinstance(build(block), Model)
        assert build(describe(block)).state_dict().keys() == build(block).state_dict().keys()
    elif group == "data":
        assert isinstance(instantiate(block, _convert_="all"), pl.LightningDataModule)
    elif group == "loss":
        assert isinstance(instantiate(block, _convert_="all"), torch.nn.Module)
    elif group == "optimizer":
        assert isinstance(instantiate(block)([torch.nn.Parameter(torch.zeros(1))]), torch.optim.Optimizer)
    elif group == "scheduler" and block:
        optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])
        instantiate(block, _convert_="all")(optimizer).state_dict()
    elif group == "callbacks":
        assert all(isinstance(instantiate(each), pl.Callback) for each in block.values() if each)
    elif group == "logger":
        for logger, each in block.items():
            pytest.importorskip(logger) if logger in ("tensorboard", "wandb") else None
            instantiate(each)
    elif group == "trainer" and name == "cpu":
        assert isinstance(instantiate(block, logger=False), pl.Trainer)
    else:
        assert group in ("experiment", "paths", "trainer", "scheduler")


@pytest.mark.parametrize("ndim", [2, 3])
@pytest.mark.parametrize("model", [path.stem for path in sorted(config_dir().glob("model/*.yaml"))])
def test_every_model_takes_the_datas_dimension(model, ndim, tmp_path):
    config = compose(tmp_path, f"model={model}", f"data.spec.ndim={ndim}")
    shape = (9, 8, 7)[:ndim]
    images = torch.rand(2, 1, 1, *shape)
    assert build(config["model"])(*images)["displacement"].shape == (1, ndim, *shape)


@pytest.mark.parametrize("words", [["optimizer=adamw"], ["optimizer=sgd", "optimizer.momentum=0.5"]])
@pytest.mark.parametrize("scheduler", ["cosine", "poly", "warmup_cosine", "none"])
def test_every_optimiser_and_schedule_take_the_trainable_parameters(words, scheduler, tmp_path):
    config = compose(tmp_path, *words, f"scheduler={scheduler}")
    model = build(
        {"_target_": "registration", "network": {"_target_": "unet", "ndim": 2, "encoder": [4], "decoder": []}}
    )
    freeze(model, ["network.down.0.0.bias"])
    make = functools.partial(instantiate, _convert_="all")
    schedule = make(config["scheduler"]) if config["scheduler"] else None
    found = RegistrationModule(model, torch.nn.Module(), make(config["optimizer"]), schedule).configure_optimizers()
    optimizer = found if schedule is None else found["optimizer"]
    held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    assert held == {id(parameter) for parameter in model.parameters() if parameter.requires_grad}
    assert optimizer.param_groups[0].get("momentum", 0.5) == 0.5
    optimizer.step()
    if schedule is not None:
        found["lr_scheduler"]["scheduler"].step()


def test_what_the_documents_give_to_slurm_composes(tmp_path):
    text = (Path(__file__).parents[1] / "docs" / "training.md").read_text(encoding="utf-8")
    (words,) = re.findall(r"^srun regnet train (.*) hydra.run.dir=runs/\$SLURM_JOB_ID$", text, re.MULTILINE)
    config = compose(tmp_path, *words.split())
    check_keys(config, get_object)
    assert config["trainer"]["strategy"] == "ddp" and config["trainer"]["accelerator"] == "gpu"
    assert f"--ntasks-per-node={config['trainer']['devices']} " in text
