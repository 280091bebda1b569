"""Points beside ANTs itself."""

from pathlib import Path

import ants
import numpy as np
import pandas
import SimpleITK as sitk
import torch

from regnet.io import write_transform
from regnet.spatial import Displacement
from tests.cli.command import regnet
from tests.cli.test_apply_points import LPS, inner_points, read_ants, write_ants
from tests.spatial.worlds import fixed_grid, smooth_flow


def test_points_go_where_ants_takes_them(tmp_path: Path) -> None:
    grid = fixed_grid(3)
    warp = tmp_path / "warp.nii.gz"
    write_transform(warp, Displacement(smooth_flow(grid, 3.0), grid), grid)
    turn = sitk.Euler3DTransform((0.0, 0.0, 0.0), 0.1, -0.05, 0.2, (2.0, -1.0, 3.0))
    affine = sitk.AffineTransform(3)
    affine.SetMatrix(turn.GetMatrix())
    affine.SetTranslation(turn.GetTranslation())
    sitk.WriteTransform(affine, str(tmp_path / "affine.tfm"))
    ras = inner_points(grid)
    table = write_ants(tmp_path / "points.csv", ras)
    frame = pandas.DataFrame((ras * LPS).numpy(), columns=list("xyz"))
    out = tmp_path / "out.csv"
    for files in ([warp], [warp, tmp_path / "affine.tfm"]):
        words = [word for file in files for word in ("-t", file)]
        assert regnet("apply", "--points", table, *words, "--out", out, "--overwrite") == 0
        theirs = ants.apply_transforms_to_points(3, frame, [str(file) for file in files])
        theirs = torch.from_numpy(theirs[["x", "y", "z"]].to_numpy(np.float64))
        assert float((read_ants(out, 3) - theirs).norm(dim=1).max()) < 1e-3
