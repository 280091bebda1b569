"""ANTs takes our files, images and points, as we do."""

from pathlib import Path

import ants
import numpy as np
import pandas
import pytest
import torch

from regnet.io import read_transform, write_transform
from regnet.spatial import chain
from tests.io.maps import affine, field, in_view, inner, random_grid, write_pair


@pytest.mark.parametrize("ndim", (2, 3))
@pytest.mark.parametrize("seed", (0, 1, 2))
@pytest.mark.parametrize("names", (("x.h5",), ("w.nii.gz", "a.mat")))
def test_ants_resamples_with_our_files_as_we_do(tmp_path: Path, names: tuple[str, ...], seed: int, ndim: int) -> None:
    fixed, moving = random_grid(ndim, seed, shear=5e-5), random_grid(ndim, seed + 10)
    image = write_pair(tmp_path, fixed, moving)
    write_transform(tmp_path / "w.nii.gz", field(fixed))
    write_transform(tmp_path / "a.mat", affine(ndim))
    write_transform(tmp_path / "x.h5", chain([field(fixed), affine(ndim)]))
    files = [str(tmp_path / name) for name in names]
    pair = [ants.image_read(str(tmp_path / f"{name}.nii.gz")) for name in ("fixed", "moving")]
    theirs = ants.apply_transforms(*pair, files, interpolator="linear").numpy()
    read = chain([read_transform(file) for file in files])  # one order for both: the last touches the image first
    ours = read.apply(image, moving, fixed)[0, 0].numpy()
    seen = in_view(read, moving, fixed).numpy()
    assert seen.mean() > 0.05
    assert np.abs(ours - theirs)[seen].max() < 0.1  # of a range of 100


def test_ants_maps_points_as_we_do(tmp_path: Path) -> None:
    grid, turn = random_grid(3, 1), torch.tensor([-1.0, -1.0, 1.0], dtype=torch.float64)
    write_transform(tmp_path / "w.nii.gz", field(grid))
    write_transform(tmp_path / "a.mat", affine(3))
    points = inner(grid)
    lps = pandas.DataFrame((points * turn).numpy(), columns=["x", "y", "z"])
    # In ANTs too, points go through the first of the list first. It inverts a leading .mat if it is not told.
    names = [str(tmp_path / "a.mat"), str(tmp_path / "w.nii.gz")]
    found = ants.apply_transforms_to_points(3, lps, names, whichtoinvert=[False, False])
    theirs = torch.tensor(found[["x", "y", "z"]].to_numpy(), dtype=torch.float64) * turn
    assert (theirs - chain([affine(3), field(grid)]).map_points(points)).abs().max() < 1e-3
