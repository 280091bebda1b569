"""Where the voxels of a NIfTI file lie, read and written."""

import gzip

import nibabel as nib
import numpy as np
import pytest
import torch

from regnet.errors import InputError
from regnet.io import Image, read_image, write_image
from regnet.spatial import Grid

from .test_image import OBLIQUE, noise, save


@pytest.mark.parametrize("codes", [(1, 1), (4, 1), (2, 0), (0, 1), (3, 4)])
def test_the_codes_of_the_fixed_image_are_kept_with_one_matrix(tmp_path, codes):
    fixed = read_image(save(tmp_path / "fixed.nii", noise(6, 7, 8), codes=codes))
    write_image(tmp_path / "moved.nii", fixed.data, fixed)
    header = nib.load(tmp_path / "moved.nii").header
    assert (int(header["sform_code"]), int(header["qform_code"])) == codes
    affine = fixed.grid.affine.numpy()
    if codes[0]:
        assert np.allclose(header.get_sform(), affine, atol=1e-5)
    if codes[1]:
        assert np.allclose(header.get_qform(), affine, atol=1e-4)


def test_a_sheared_affine_is_in_the_sform_alone(tmp_path):
    affine = OBLIQUE @ np.array([[1, 0.2, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    grid = Grid((5, 6, 7), torch.from_numpy(affine))
    write_image(tmp_path / "a.nii", torch.zeros(5, 6, 7), grid)
    header = nib.load(tmp_path / "a.nii").header
    assert int(header["qform_code"]) == 0 and int(header["sform_code"]) == 1
    assert read_image(tmp_path / "a.nii").grid.matches(grid)


def test_without_codes_one_rule_holds_and_a_warning_says_so(tmp_path):
    path = save(tmp_path / "a.nii", noise(4, 5, 6), np.diag([2.0, 3, 4, 1]), codes=(0, 0))
    with pytest.warns(UserWarning, match=r"a\.nii: has neither sform nor qform"):
        image = read_image(path)
    assert np.allclose(image.grid.affine.numpy(), [[-2, 0, 0, 3], [0, 3, 0, -6], [0, 0, 4, -10], [0, 0, 0, 1]])
    write_image(tmp_path / "b.nii", image.data, image)
    header = nib.load(tmp_path / "b.nii").header
    assert int(header["sform_code"]) == int(header["qform_code"]) == 0
    assert np.allclose(header.get_best_affine(), image.grid.affine.numpy())
    # On another grid the silence would be a lie.
    other = Image(image.data, image.grid.window((1, 0, 0), image.grid.shape), header=image.header)
    write_image(tmp_path / "c.nii", other.data, other)
    assert read_image(tmp_path / "c.nii").grid.matches(other.grid)


def test_lengths_in_metres_or_microns_become_millimetres(tmp_path):
    for unit, factor in (("meter", 1000), ("micron", 1e-3), ("mm", 1), ("unknown", 1)):
        stored = nib.Nifti1Image(noise(4, 5, 6), np.diag([2.0, 3, 4, 1]))
        stored.header.set_xyzt_units(unit)
        nib.save(stored, tmp_path / "a.nii")
        assert read_image(tmp_path / "a.nii").grid.spacing == pytest.approx((2 * factor, 3 * factor, 4 * factor))


def test_a_slice_that_is_not_axial_has_the_geometry_of_its_plane(tmp_path):
    coronal = np.array([[2.0, 0, 0, 10], [0, 0, 1, 20], [0, 3, 0, 30], [0, 0, 0, 1]])
    image = read_image(save(tmp_path / "a.nii", noise(6, 5, 1), coronal))
    assert np.allclose(image.grid.affine.numpy(), [[2, 0, 10], [0, 3, 30], [0, 0, 1]])
    tilted = read_image(save(tmp_path / "b.nii", noise(6, 5, 1)))
    steps = OBLIQUE[:3, :2]
    flat = tilted.grid.affine.numpy()[:2, :2]
    assert np.allclose(flat.T @ flat, steps.T @ steps, atol=1e-5)
    assert tilted.grid.orientation == "LA"
    write_image(tmp_path / "c.nii.gz", tilted.data, tilted)
    assert np.allclose(nib.load(tmp_path / "c.nii.gz").affine, OBLIQUE, atol=1e-5)


@pytest.mark.parametrize("code", [4, 5, 6, 7, 255])
def test_an_unknown_unit_of_length_means_millimetres(tmp_path, code):
    stored = nib.Nifti1Image(noise(4, 5, 6), np.diag([2.0, 3, 4, 1]))
    stored.header["xyzt_units"] = code
    nib.save(stored, tmp_path / "a.nii")
    assert read_image(tmp_path / "a.nii").grid.spacing == pytest.approx((2, 3, 4))


def test_a_slice_without_a_step_between_slices_goes_back_to_its_plane(tmp_path):
    header = nib.Nifti1Image(noise(6, 7, 1), OBLIQUE).header
    affine = OBLIQUE.copy()
    affine[:3, 2] = 0
    header.set_sform(affine, 1)
    nib.Nifti1Image(noise(6, 7, 1), None, header).to_filename(tmp_path / "a.nii")
    image = read_image(tmp_path / "a.nii")
    write_image(tmp_path / "b.nii", image.data, image)
    assert read_image(tmp_path / "b.nii").grid.matches(image.grid)
    assert np.allclose(nib.load(tmp_path / "b.nii").affine[:, [0, 1, 3]], affine[:, [0, 1, 3]], atol=1e-5)


@pytest.mark.parametrize("shape", [(6, 7, 8), (6, 7, 1)])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_affine_that_is_not_finite_is_named_and_nothing_else_said(tmp_path, shape, value, recwarn):
    stored = nib.Nifti1Image(noise(*shape), np.eye(4))
    stored.header["srow_x"] = value
    stored.header["pixdim"][1] = value
    for codes in ((1, 0), (0, 0)):
        stored.header["sform_code"], stored.header["qform_code"] = codes
        raw = stored.header.copy()
        raw["vox_offset"], raw["magic"] = 352, b"n+1"
        (tmp_path / "a.nii").write_bytes(raw.binaryblock + bytes(4) + noise(*shape).tobytes())
        with pytest.raises(InputError, match=r"a\.nii: unusable geometry \(the affine has entries that are NaN"):
            read_image(tmp_path / "a.nii")
    assert not recwarn.list


def test_a_header_that_nibabel_mends_or_refuses_adds_no_lines(tmp_path, caplog):
    stored = nib.Nifti1Image(noise(4, 5, 6), np.eye(4))
    nib.save(stored, tmp_path / "a.nii")
    raw = bytearray((tmp_path / "a.nii").read_bytes())
    raw[252:254] = (77).to_bytes(2, "little")  # qform_code
    (tmp_path / "b.nii").write_bytes(raw)
    read_image(tmp_path / "b.nii")
    raw[70:72] = (77).to_bytes(2, "little")  # datatype
    (tmp_path / "c.nii").write_bytes(raw)
    with pytest.raises(InputError, match=r"c\.nii: .*data code 77"):
        read_image(tmp_path / "c.nii")
    assert not caplog.records


@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz", "a.mgh", "a.mgz"])
def test_a_header_that_promises_more_than_the_file_can_hold_makes_no_room(tmp_path, name):
    """Gigabytes in a kilobyte."""
    shape = (2000,) * 3
    if "mg" in name:
        header = nib.MGHImage(np.zeros((4, 5, 6), np.float32), np.eye(4)).header
        header["dims"][:3] = shape
    else:
        header = nib.Nifti1Image(np.zeros((4, 5, 6)), np.eye(4)).header
        header["dim"][1:4] = shape
        header["vox_offset"], header["magic"] = 352, b"n+1"
    stored = header.binaryblock + bytes(500)
    (tmp_path / name).write_bytes(gzip.compress(stored) if name.endswith("z") else stored)
    with pytest.raises(InputError, match=rf"{name}: truncated"):
        read_image(tmp_path / name)
