"""What a dictionary may build, and what not."""

import sys

import pytest
import torch
from torch import nn

from regnet.models import Cascade, Registration, UNet, VelocityHead, build, describe
from regnet.models.registry import REGISTRY, packages

CONFIG = {
    "_target_": "regnet.models.Registration",
    "network": {"_target_": "regnet.models.UNet", "ndim": 2, "encoder": [4, 8], "decoder": [4]},
    "head": {"_target_": "regnet.models.VelocityHead", "ndim": 2, "in_channels": 4},
}
THEIRS = """
import os
from torch import nn
class Net(nn.Module):
    def __init__(self, ndim, width=4):
        super().__init__()
        self.layer = nn.Conv2d(2, ndim, 3, padding=1)
    def forward(self, moving, fixed):
        import torch
        return self.layer(torch.cat([moving, fixed], 1))
"""


@pytest.fixture
def theirs(tmp_path, monkeypatch):
    """A package of somebody else's."""
    (tmp_path / "theirnets").mkdir()
    (tmp_path / "theirnets" / "__init__.py").write_text(THEIRS)
    monkeypatch.syspath_prepend(tmp_path)
    yield {"_target_": "theirnets.Net", "ndim": 2}
    sys.modules.pop("theirnets", None)


def test_paths_and_keys_build_the_same_model():
    described = describe(CONFIG)
    assert described["_target_"] == "registration"
    assert described["network"]["_target_"] == "unet" and described["head"]["_target_"] == "velocity"
    for config in (CONFIG, described):
        model = build(config)
        assert isinstance(model, Registration) and isinstance(model.network, UNet)
        assert isinstance(model.head, VelocityHead)


def test_a_description_names_no_module_of_regnet():
    assert "regnet" not in str(describe(CONFIG))


def test_their_network_loads_when_trusted_alone_or_in_a_registration(theirs):
    with pytest.raises(ValueError, match="outside regnet: trust the package 'theirnets'"):
        build(theirs)
    alone = build(theirs, trust=["theirnets"])
    inside = build({"_target_": "registration", "network": theirs, "head": None}, trust=["theirnets"])
    for model in (alone, inside):
        assert model(torch.rand(1, 1, 8, 9), torch.rand(1, 1, 8, 9))["displacement"].shape == (1, 2, 8, 9)
    assert describe(theirs, ["theirnets"])["_target_"] == "theirnets.Net"


@pytest.mark.parametrize(
    "target",
    ["theirnets.os.system", "theirnets.nn.Linear", "theirnets.nothing", "theirnets.os", "theirnets", "theirnets2.Net"],
)
def test_trust_ends_at_the_package(theirs, target):
    with pytest.raises(ValueError, match="theirnets"):
        build({"_target_": target}, trust=["theirnets"])


@pytest.mark.parametrize("target", ["os.system", "regnet.config.config_dir", "builtins.eval", "torch.nn.Linear"])
def test_untrusted_code_is_not_run(target):
    with pytest.raises(ValueError, match="outside regnet"):
        build({"_target_": target})


def test_functions_of_regnet_are_no_models():
    with pytest.raises(ValueError, match=r"no nn\.Module"):
        build({"_target_": "regnet.models.registry.build", "config": {}})


def test_arguments_must_be_plain(theirs):
    for bad in ({"_target_": "os.getcwd"}, [{"_target_": "os.getcwd"}], nn.Linear(1, 1)):
        with pytest.raises(ValueError, match=r"argument .width. of theirnets\.Net must be a plain value"):
            build({**theirs, "width": bad}, trust=["theirnets"])


def test_unknown_arguments_are_told_with_the_nearest():
    network = {**CONFIG["network"], "encodr": [4]}
    with pytest.raises(ValueError, match="has no argument 'encodr': did you mean 'encoder'"):
        build({**CONFIG, "network": network})
    with pytest.raises(ValueError, match="no model part is called 'unett': did you mean 'unet'"):
        build({"_target_": "unett"})
    with pytest.raises(ValueError, match="missing a required argument: 'ndim'"):
        build({"_target_": "unet"})
    with pytest.raises(ValueError, match="needs a `_target_`"):
        build({"ndim": 2})


def test_compositions_are_built_from_lists_of_models(theirs):
    config = {"_target_": "regnet.models.Cascade", "factors": [2, 1], "stages": [CONFIG, {**CONFIG, "network": theirs}]}
    config["stages"][1]["head"] = None
    described = describe(config, ["theirnets"])
    assert described["_target_"] == "cascade"
    assert [stage["network"]["_target_"] for stage in described["stages"]] == ["unet", "theirnets.Net"]
    assert packages(config) == ["regnet", "theirnets"]
    model = build(described, ["theirnets"])
    assert isinstance(model, Cascade) and isinstance(model.stages[0].network, UNet)
    assert model(*torch.rand(2, 1, 1, 8, 9))["displacement"].shape == (1, 2, 8, 9)


def test_untrusted_code_hides_in_no_list(theirs):
    for stages in ([CONFIG, theirs], [[theirs]], [{"_target_": "os.getcwd"}]):
        with pytest.raises(ValueError, match="outside regnet"):
            build({"_target_": "cascade", "stages": stages})


def test_a_stage_that_is_no_model_is_refused():
    for stage in (CONFIG["network"], {"ndim": 2}, 3):
        with pytest.raises(ValueError, match="a stage must be a whole model"):
            build({"_target_": "cascade", "stages": [stage]})


def test_every_key_names_a_public_class():
    import regnet.models

    for cls in REGISTRY.values():
        assert getattr(regnet.models, cls.__name__) is cls
