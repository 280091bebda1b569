"""FSL's files by their definitions; against its readers in tests/parity/test_fsl.py."""

from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import torch

from regnet.errors import InputError
from regnet.io import read_transform, write_transform
from regnet.spatial import Grid, Transform, chain

from .maps import affine, apart, field, inner, random_grid

SEEDS = (0, 1, 2, 3)  # every sign of both determinants


def images(seed: int) -> tuple[Grid, Grid]:
    """The grids of a fixed and a moving image."""
    return random_grid(3, seed, mirrored=bool(seed & 1)), random_grid(3, seed + 10, mirrored=bool(seed & 2))


def test_flirt_counts_the_first_axis_from_its_other_end_of_a_neurological_image(tmp_path: Path) -> None:
    # 10 voxels of 2 mm. Determinant < 0 (LAS): FSL's x is 2 i. Determinant > 0 (RAS): FSL's x is 2 (9 - i).
    # The matrix shifts FSL's x by 6 mm from moving to fixed: moving voxel i lies at fixed voxel i + 3, or i - 3.
    (tmp_path / "a.mat").write_text("1 0 0 6\n0 1 0 0\n0 0 1 0\n0 0 0 1\n")
    for sign, moved in ((-1.0, 1.0), (1.0, 7.0)):
        grid = Grid((10, 8, 6), torch.diag(torch.tensor([2 * sign, 2, 2, 1])))
        there = read_transform(tmp_path / "a.mat", "fsl", grid, grid).map_points(
            grid.to_world(torch.tensor([4.0, 3, 2]))
        )
        assert torch.allclose(grid.to_voxel(there), torch.tensor([moved, 3, 2], dtype=torch.float64))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_field_of_places_is_told_from_one_of_steps(tmp_path: Path, seed: int) -> None:
    fixed, moving = images(seed)
    whole = chain([field(fixed), affine(3)]).on(fixed)
    write_transform(tmp_path / "w.nii.gz", whole, fixed, target="fsl", moving=moving)
    steps = nib.load(tmp_path / "w.nii.gz")
    at = np.stack(np.meshgrid(*(np.arange(n) for n in fixed.shape), indexing="ij"), -1) * np.array(fixed.spacing)
    if torch.linalg.det(fixed.affine) > 0:
        at[..., 0] = at[::-1, ..., 0]
    places = nib.Nifti1Image((steps.get_fdata() + at).astype(np.float32), steps.affine, steps.header)
    nib.save(places, tmp_path / "absolute.nii.gz")
    assert apart(read_transform(tmp_path / "absolute.nii.gz", moving=moving), whole, inner(fixed)) < 1e-4


def test_what_is_no_warp_of_fsl_gets_one_line(tmp_path: Path) -> None:
    fixed, moving = images(0)
    write_transform(tmp_path / "w.nii.gz", field(fixed), fixed, target="fsl", moving=moving)
    (tmp_path / "three.mat").write_text("1 0 0\n0 1 0\n")
    (tmp_path / "flat.mat").write_text("1 0 0 0\n0 0 0 0\n0 0 1 0\n0 0 0 1\n")
    (tmp_path / "fine.mat").write_text("1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n")
    image = nib.Nifti1Image(np.zeros((4, 5, 6, 3), np.float32), np.eye(4))
    image.header["intent_code"] = 2009
    nib.save(image, tmp_path / "square.nii.gz")
    both = {"moving": moving, "fixed": fixed}
    for name, given, reason in (
        ("w.nii.gz", {}, "give --moving"),
        ("three.mat", both, "4 x 4"),
        ("flat.mat", both, "not an affine map"),
        ("fine.mat", {}, "--from fsl"),
        ("square.nii.gz", both, "quadratic"),
    ):
        with pytest.raises(InputError, match=rf"{name}: .*{reason}"):
            read_transform(tmp_path / name, **given)
    with pytest.raises(InputError, match="this transform deforms"):
        write_transform(tmp_path / "x.mat", field(fixed), fixed, target="fsl", moving=moving)
    with pytest.raises(InputError, match="give --moving"):
        write_transform(tmp_path / "x.nii.gz", field(fixed), fixed, target="fsl")
    flat: Transform = field(random_grid(2, 0))
    with pytest.raises(InputError, match="3-D"):
        write_transform(tmp_path / "x.nii.gz", flat, target="fsl", moving=random_grid(2, 1))
