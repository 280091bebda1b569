"""The weighted sum of terms."""

import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch import Tensor, nn

from regnet import ops
from regnet.losses import LNCC, MSE, BendingEnergy, Diffusion, GradICON, Objective, diffusion, mse


def _pair() -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    generator = torch.Generator().manual_seed(1)
    outputs = {"moved": torch.rand(1, 1, 8, 7, generator=generator), "velocity": torch.rand(1, 2, 8, 7)}
    return outputs, {"fixed": torch.rand(1, 1, 8, 7, generator=generator)}


def test_the_total_is_the_weighted_sum_and_the_values_are_raw() -> None:
    outputs, batch = _pair()
    total, values = Objective({"similarity": MSE(weight=2.0), "smoothness": Diffusion(weight=0.3)})(outputs, batch)
    expected = {"similarity": mse(outputs["moved"], batch["fixed"]), "smoothness": diffusion(outputs["velocity"])}
    assert values == expected
    assert torch.allclose(total, 2 * expected["similarity"] + 0.3 * expected["smoothness"])


def test_a_module_of_the_user_is_a_term() -> None:
    class Largest(nn.Module):
        def forward(self, outputs: dict[str, Tensor], batch: dict[str, Tensor]) -> Tensor:
            return (outputs["moved"] - batch["fixed"]).abs().max()

    outputs, batch = _pair()
    total, values = Objective({"largest": Largest()})(outputs, batch)
    assert total == values["largest"] == (outputs["moved"] - batch["fixed"]).abs().max()


def test_hydra_builds_an_objective_and_null_switches_a_term_off() -> None:
    config = OmegaConf.create(
        {
            "_target_": "regnet.losses.Objective",
            "terms": {
                "similarity": {"_target_": "regnet.losses.LNCC", "window": [3, 5], "weight": 1.0, "on": "image"},
                "smoothness": {"_target_": "regnet.losses.Diffusion", "weight": 0.3, "on": "velocity"},
                "overlap": None,
            },
        }
    )
    objective = instantiate(config)
    assert list(objective.terms) == ["similarity", "smoothness"]
    assert isinstance(objective.terms["similarity"], LNCC) and objective.terms["smoothness"].weight == 0.3
    total, _ = objective(*_pair())
    assert total.isfinite()


def _image_pair() -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    outputs, batch = _pair()
    batch["moving"] = torch.rand(1, 1, 8, 7, generator=torch.Generator().manual_seed(2))
    outputs["displacement"] = ops.integrate(outputs["velocity"], bound="replicate")
    return outputs, batch


def test_a_level_looks_at_the_halved_grid() -> None:
    outputs, batch = _image_pair()
    objective = Objective({"fine": MSE(), "coarse": MSE(level=1), "coarser": MSE(level=2)})
    _, values = objective(outputs, batch)
    half = [ops.resize(image, (4, 4), bound="replicate") for image in (outputs["moved"], batch["fixed"])]
    quarter = [ops.resize(image, (2, 2), bound="replicate") for image in half]
    assert values == {"fine": mse(outputs["moved"], batch["fixed"]), "coarse": mse(*half), "coarser": mse(*quarter)}


@pytest.mark.parametrize("level", [0, 1])
def test_both_directions_are_the_mean_of_there_and_back(level: int) -> None:
    outputs, batch = _image_pair()
    there = Objective({"it": MSE(level=level)})(outputs, batch)[0]
    back_flow = ops.integrate(-outputs["velocity"], bound="replicate")
    back_moved = ops.warp(batch["fixed"], back_flow, bound="replicate", extrapolate="edge")
    view = ops.warp(torch.ones_like(batch["fixed"]), back_flow, bound="replicate", extrapolate="edge")
    exchanged = {"moved": back_moved, "moved_view": view}, {"fixed": batch["moving"]}
    back = Objective({"it": MSE(level=level)})(*exchanged)[0]
    both = Objective({"it": MSE(level=level, both_directions=True)})(outputs, batch)[0]
    torch.testing.assert_close(both, (there + back) / 2)


def test_the_answer_to_the_pair_exchanged_is_asked_for_where_a_term_needs_it() -> None:
    field = {"displacement": torch.zeros(1, 2, 8, 7)}
    both = Objective({"it": MSE(both_directions=True)})
    assert not Objective({"it": MSE()}).wants_swap(field)
    assert both.wants_swap(field) and not both.wants_swap({**field, "velocity": field["displacement"]})
    assert Objective({"it": GradICON()}).wants_swap({**field, "velocity": field["displacement"]})


def test_it_tells_each_term_with_its_unit() -> None:
    class Plain(nn.Module):
        pass

    objective = Objective({"a": LNCC(window=5), "b": BendingEnergy(weight=0.5), "c": BendingEnergy(units="voxels")})
    assert objective.describe() == [
        "a: LNCC(weight=1.0, on='image', window=5) [no unit]",
        "b: BendingEnergy(weight=0.5, on='field') [1/mm²]",
        "c: BendingEnergy(weight=1.0, on='field', units='voxels') [1/voxels²]",
    ]
    assert Objective({"mine": Plain()}).describe() == ["mine: Plain() [no unit]"]


def test_an_objective_without_terms_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one loss term"):
        Objective({"similarity": None})
    with pytest.raises(ValueError, match="'similarity' must be an"):
        Objective({"similarity": mse})


def test_what_a_conditional_model_was_told_multiplies_the_smoothness_terms_alone() -> None:
    outputs, batch = _pair()
    objective = Objective({"similarity": MSE(weight=2.0), "a": Diffusion(weight=0.5), "b": BendingEnergy(weight=4.0)})
    plain, values = objective(outputs, batch)
    told, same = objective({**outputs, "regularity": torch.tensor([0.25])}, batch)
    assert same == values
    assert told == pytest.approx(float(2 * values["similarity"] + 0.25 * (plain - 2 * values["similarity"])))


def test_a_name_that_torch_uses_is_refused() -> None:
    for name in ("half", "a.b"):
        with pytest.raises(ValueError, match=f"a loss term cannot be called '{name}'"):
            Objective({name: MSE()})


def test_a_conditional_model_without_a_term_to_tell_is_refused() -> None:
    outputs, batch = _pair()
    with pytest.raises(ValueError, match="a conditional model needs a term that makes a field smooth"):
        Objective({"similarity": MSE()})({**outputs, "regularity": torch.tensor([0.5])}, batch)
