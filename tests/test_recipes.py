"""Every experiment file composes and takes a step of training on a tiny pair."""

import pytest
import torch
from hydra.utils import get_object, instantiate

from regnet.config import config_dir
from regnet.models import build
from regnet.training import RegistrationModule
from regnet.training.configuration import check_keys
from tests.test_configs import compose

NAMES = sorted(path.stem for path in config_dir().glob("experiment/*.yaml"))
PUBLISHED = ("voxelmorph", "voxelmorph_probabilistic", "midir", "lapirn", "gradicon")


@pytest.fixture(scope="module")
def batch():
    """A pair of 2-D slices of the sample brains, and points that lie in them."""
    data = instantiate(
        {"_target_": "regnet.data.SyntheticData", "spec": {"ndim": 2, "spacing": 8.0}, "shape": 24, "pairs": 2},
        _convert_="all",
    )
    first = next(iter(data.train_dataloader()))
    points = torch.rand(1, 5, 2) * 20
    return {**first, "fixed_points": points, "moving_points": points + 1}


def _step(config, batch):
    """Train for a step; how far any weight has moved, and the terms."""
    torch.manual_seed(0)
    module = RegistrationModule(
        build(config["model"]),
        instantiate(config["loss"], _convert_="all"),
        instantiate(config["optimizer"], _convert_="all"),
        seed=config["seed"],
    )
    before = [parameter.detach().clone() for parameter in module.parameters()]
    optimizer = module.optimizer(module.parameters())
    _, total, terms = module.judge(batch, epoch=0)
    total.backward()
    optimizer.step()
    assert total.isfinite() and all(value.isfinite() for value in terms.values())
    return max(float((a - b.detach()).abs().max()) for a, b in zip(before, module.parameters(), strict=True)), terms


@pytest.mark.parametrize("name", [name for name in NAMES if name != "smoke"])
def test_every_experiment_takes_a_step(name, batch, tmp_path):
    config = compose(tmp_path, f"experiment={name}", "data.spec.ndim=2")
    check_keys(config, get_object)
    moved, _ = _step(config, batch)
    # Adam's first step is the learning rate, whatever the gradient.
    assert moved == pytest.approx(config["optimizer"]["lr"], rel=0.01)
    assert config["name"] == name


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_was_published_is_not_called_reproduced(name):
    text = (config_dir() / "experiment" / f"{name}.yaml").read_text(encoding="utf-8")
    assert "hyperparameters as published, not reproduced here" in text.replace("\n# ", " ")


@pytest.mark.parametrize("model", ["unet_velocity", "unet_displacement", "unet_spline", "pyramid", "two_step"])
@pytest.mark.parametrize(
    ("term", "kind"), [("overlap", "SoftDice"), ("entropy", "CrossEntropy"), ("points", "Landmarks")]
)
def test_labels_or_landmarks_alone_train_any_model(model, term, kind, batch, tmp_path):
    alone = [
        "loss.terms.similarity=null",
        "loss.terms.smoothness=null",
        f"+loss.terms.{term}._target_=regnet.losses.{kind}",
    ]
    config = compose(tmp_path, f"model={model}", "data.spec.ndim=2", *alone)
    moved, terms = _step(config, batch)
    assert set(terms) == {term} and moved == pytest.approx(1e-3, rel=0.01)
