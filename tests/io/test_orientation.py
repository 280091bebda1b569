"""The result lies as the fixed image does, whatever the orientations: against scipy."""

from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import torch
from nibabel.orientations import axcodes2ornt, ornt_transform
from scipy.ndimage import affine_transform

from regnet.io import read_image, write_image
from regnet.spatial import Affine
from tests.spatial.worlds import waves

from .maps import random_grid


@pytest.mark.parametrize("codes", ("PIR", "LAS", "SAL"))
def test_the_moved_image_has_the_axes_of_the_fixed_one(tmp_path: Path, codes: str) -> None:
    # C-48
    affine = np.diag([1.5, 1, 1.25, 1])
    affine[:3, 3] = -8
    upright = nib.Nifti1Image(np.zeros((14, 17, 12), np.float32), affine)
    turned = upright.as_reoriented(ornt_transform(axcodes2ornt("RAS"), axcodes2ornt(codes)))
    nib.save(turned, tmp_path / "fixed.nii.gz")
    moving = random_grid(3, 2, mirrored=False)
    write_image(tmp_path / "moving.nii.gz", waves(moving)[0], moving)
    fixed, image = read_image(tmp_path / "fixed.nii.gz"), read_image(tmp_path / "moving.nii.gz")
    moved = Affine.identity(3).apply(image.data[None], image.grid, fixed.grid, background=-1)
    write_image(tmp_path / "moved.nii.gz", moved[0], fixed)
    ours = nib.load(tmp_path / "moved.nii.gz")
    assert "".join(nib.aff2axcodes(ours.affine)) == codes and ours.shape == turned.shape
    across = np.linalg.inv(image.grid.affine.numpy()) @ turned.affine
    theirs = affine_transform(
        image.data[0].numpy(), across[:3, :3], across[:3, 3], output_shape=turned.shape, order=1, cval=-1
    )
    seen = theirs >= 0
    assert seen.mean() > 0.2
    assert np.abs(ours.get_fdata() - theirs)[seen].max() < 0.01


def disagreeing(path: Path, codes: tuple[int, int]) -> Path:
    """C-45: the sform's origin is (-10, -20, -30), the qform's 0.7 mm to the right of it."""
    image = nib.Nifti1Image(np.arange(60, dtype=np.float32).reshape(3, 4, 5), np.eye(4))
    sform, qform = np.eye(4), np.eye(4)
    sform[:3, 3] = (-10, -20, -30)
    qform[:3, 3] = (-9.3, -20, -30)
    image.set_sform(sform, codes[0])
    image.set_qform(qform, codes[1])
    nib.save(image, path)
    return path


@pytest.mark.parametrize("shear", (1e-5, 1e-4, 5e-4, 2e-3, 0.1))
def test_what_we_write_puts_voxels_in_one_place(tmp_path: Path, shear: float) -> None:
    # A quaternion holds no shear: where it would put a voxel a twentieth off, it is left out.
    grid = random_grid(3, 1, shear)
    write_image(tmp_path / "x.nii", torch.zeros(grid.shape), grid)
    header = nib.load(tmp_path / "x.nii").header
    last = np.append(np.array(grid.shape) - 1, 1)
    apart = np.linalg.norm((header.get_sform() - header.get_qform()) @ last)
    assert apart < 0.05 if header["qform_code"] else shear > 1e-4
    assert read_image(tmp_path / "x.nii").grid.matches(grid)


@pytest.mark.parametrize("codes", ((1, 1), (2, 1)))
def test_the_sform_is_taken_and_a_warning_names_a_file_whose_qform_disagrees(
    tmp_path: Path, codes: tuple[int, int]
) -> None:
    path = disagreeing(tmp_path / "two.nii.gz", codes)
    with pytest.warns(UserWarning, match=r"two\.nii\.gz: sform and qform differ by up to 0\.7 mm"):
        image = read_image(path)
    assert image.grid.affine[:3, 3].tolist() == [-10, -20, -30]
    write_image(tmp_path / "out.nii.gz", image.data, image)
    again = read_image(tmp_path / "out.nii.gz")  # what we write agrees with itself
    assert torch.equal(again.grid.affine, image.grid.affine)
