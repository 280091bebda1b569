"""The weighted sum of terms."""

import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch import Tensor, nn

from regnet.losses import LNCC, MSE, Diffusion, Objective, diffusion, mse


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


def test_an_objective_without_terms_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one loss term"):
        Objective({"similarity": None})
    with pytest.raises(ValueError, match="'similarity' must be an"):
        Objective({"similarity": mse})
