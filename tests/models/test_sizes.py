"""One set of weights serves every size, and where an image lies in its grid does not matter (C-54, C-55)."""

import pytest
import torch

from regnet.models import build
from regnet.models.heads.field import FieldLayer

from .configured import AFFINE, NAMES, configured


def model(name, ndim):
    """A configured model whose field is not nearly zero."""
    torch.manual_seed(0)
    made = build(configured(name, ndim)).eval()
    for layer in made.modules():
        if isinstance(layer, FieldLayer):
            torch.nn.init.normal_(layer.convolution.weight, std=0.02)
    return made


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(17, 19, 23), (31, 32, 33), (1, 9), (45, 54)])
def test_every_model_takes_every_size(name, shape):
    made = model(name, len(shape))
    moving, fixed = torch.rand(2, 2, 1, *shape)
    with torch.no_grad():
        outputs = made(moving, fixed)
    for field in ("displacement", "velocity", "inverse_displacement"):
        if field in outputs:
            assert outputs[field].shape == (2, len(shape), *shape)
            assert outputs[field].dtype == torch.float32 and outputs[field].isfinite().all()
    assert outputs["moved"].shape == moving.shape
    assert outputs["displacement"].abs().max() > 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_the_state_of_every_model_holds_nothing_of_an_images_size(name):
    made = model(name, 2)
    before = {key: value.shape for key, value in made.state_dict().items()}
    with torch.no_grad():
        made(*torch.rand(2, 1, 1, 37, 45))
    assert {key: value.shape for key, value in made.state_dict().items()} == before
    assert set(made.state_dict()) == {key for key, _ in made.named_parameters()}


@pytest.mark.parametrize("name", NAMES)
def test_every_pair_of_a_batch_is_registered_by_itself(name):
    made = model(name, 2)
    moving, fixed = torch.rand(2, 3, 1, 21, 26)
    with torch.no_grad():
        together = made(moving, fixed)["displacement"]
        alone = torch.cat([made(moving[n : n + 1], fixed[n : n + 1])["displacement"] for n in range(3)])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-4)


def test_a_batch_of_four_volumes_is_no_shape():
    # voxelmorph 0.3.4 takes a batch of D + 1 for an affine matrix when it composes; 3 images are tried above.
    made = model("two_step", 3)
    moving, fixed = torch.rand(2, 4, 1, 9, 10, 8)
    with torch.no_grad():
        together, first = (made(moving[:n], fixed[:n])["displacement"] for n in (4, 1))
    torch.testing.assert_close(together[:1], first, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in AFFINE])
def test_background_may_be_padded_on_either_side(name):
    # 64 voxels are a multiple of every stride here. Far from the border, where convolutions see its zeros, the field
    # is the same whichever side they are put on.
    made = model(name, 2)
    images = torch.zeros(2, 1, 1, 320, 24)
    images[..., 144:176, 4:20] = torch.rand(2, 1, 1, 32, 16)
    fields = []
    with torch.no_grad():
        for before, after in ((64, 0), (0, 64)):
            padded = torch.nn.functional.pad(images, [0, 0, before, after])
            fields.append(made(*padded)["displacement"][:, :, before + 144 : before + 176])
    assert fields[0].abs().max() > 1e-2
    torch.testing.assert_close(fields[0], fields[1], rtol=0, atol=2e-3)


@pytest.mark.parametrize("name", NAMES)
def test_the_field_of_every_model_stays_float32_under_autocast(name):
    made = model(name, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        outputs = made(*torch.rand(2, 1, 1, 24, 18))
    assert all(value.dtype == torch.float32 for value in outputs.values())
