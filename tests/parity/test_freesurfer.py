"""FreeSurfer's linear transforms, against nitransforms."""

import numpy as np
import pytest
import torch
from nitransforms.io.lta import FSLinearTransform

from regnet.io import read_transform, write_transform
from tests.io.maps import affine, random_grid


@pytest.mark.parametrize("seed", (0, 1, 2))
@pytest.mark.parametrize("kind", (0, 1))
def test_nitransforms_reads_our_lta_as_we_do(tmp_path, seed: int, kind: int) -> None:
    fixed, moving = random_grid(3, seed), random_grid(3, seed + 11)
    path = tmp_path / "new/a.lta"
    write_transform(path, affine(3), fixed, moving=moving)
    text = path.read_text("utf-8")
    if kind == 0:  # between voxels, as FreeSurfer's tools often leave it
        between = torch.linalg.inv(fixed.affine) @ torch.linalg.inv(affine(3).matrix) @ moving.affine
        rows = "\n".join(" ".join(f"{x:.15e}" for x in row) for row in between.tolist())
        before, rest = text.split("1 4 4\n")
        text = before.replace("type      = 1", "type      = 0") + "1 4 4\n" + rows + "\nsrc" + rest.split("\nsrc", 1)[1]
        path.write_text(text)
    theirs = FSLinearTransform.from_string(text).to_ras()
    assert np.allclose(theirs, affine(3).matrix, atol=1e-3)
    assert torch.allclose(read_transform(path).matrix, affine(3).matrix, atol=1e-9)
