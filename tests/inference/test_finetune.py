"""Fine-tuning fits a copy of the network to one pair and leaves the network alone."""

import copy
from pathlib import Path

import pytest
import torch

from regnet.data.spec import InputSpec
from regnet.inference import LoadedModel, find, load_model
from regnet.inference.refine import finetune

from .heads import centred, head, points, shift
from .networks import write_checkpoint

GRID = centred((26, 30))
SPEC = InputSpec(ndim=2, spacing=1.0, margin_mm=None)


@pytest.fixture
def loaded(tmp_path: Path) -> LoadedModel:
    return load_model(write_checkpoint(tmp_path / "a.ckpt", SPEC))


@pytest.mark.parametrize("how", [{"finetune": 3}, {"refine": 3}, {"finetune": 2, "refine": 2}])
def test_the_weights_are_never_touched(loaded: LoadedModel, how: dict[str, int]) -> None:
    before = copy.deepcopy(loaded.model.state_dict())
    first, second = head(GRID, 8, shift(1.0, 0.0)), head(GRID, 8)
    one = find(first, second, loaded, **how).forward.flow
    for name, weight in loaded.model.state_dict().items():
        assert torch.equal(weight, before[name])
        assert not loaded.model.get_parameter(name).requires_grad
    find(second, first, loaded, **how)  # another pair in between leaves no trace (ICON's defect)
    assert torch.equal(find(first, second, loaded, **how).forward.flow, one)


def test_a_tuned_copy_registers_its_pair_better(loaded: LoadedModel) -> None:
    moving, fixed = head(GRID, 8, shift(-1.5, 0.0)), head(GRID, 8)
    tuned = finetune(loaded, moving, fixed, 60, learning_rate=1e-2)
    found = find(moving, fixed, tuned).forward.displacement_mm()[0]
    assert float(found[points(GRID).norm(dim=-1) < 6].mean()) > 0.7


def test_without_a_network_there_is_nothing_to_tune() -> None:
    with pytest.raises(ValueError, match="needs a model"):
        find(head(GRID, 8), head(GRID, 8), refine=1, finetune=1)
