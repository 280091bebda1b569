"""The example that a run leaves."""

import torch

from regnet.io import read_image
from regnet.training.callbacks import Artefacts
from tests.training import tiny

pytestmark = tiny.quiet


def test_the_example_is_the_first_validation_pair_on_its_grid(tmp_path):
    module = tiny.module()
    tiny.trainer(tmp_path, 1, callbacks=[Artefacts(tmp_path)], enable_checkpointing=False).fit(
        module, tiny.loader(), tiny.loader()
    )
    pair = next(iter(tiny.loader()))
    moved = module(pair["moving"], pair["fixed"])["moved"]
    for name, expected in {"fixed": pair["fixed"], "moving": pair["moving"], "moved": moved}.items():
        image = read_image(tmp_path / "example" / f"{name}.nii.gz")
        assert image.grid.spacing == (2.0, 1.0)
        torch.testing.assert_close(image.data[0].float(), expected[0, 0].detach())
