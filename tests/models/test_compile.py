"""Models are compiled whole: nothing in them breaks the graph."""

import pytest
import torch

from regnet.models import build

from .configured import configured


@pytest.mark.parametrize("name", ["affine_velocity", "unet_spline_velocity"])
def test_a_compiled_model_gives_the_same_fields(name):
    torch.manual_seed(0)
    model = build(configured(name, 2))
    moving, fixed = torch.rand(2, 1, 1, 24, 18)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    outputs = compiled(moving, fixed)
    for field, value in model(moving, fixed).items():
        torch.testing.assert_close(outputs[field], value)
    outputs["moved"].sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
