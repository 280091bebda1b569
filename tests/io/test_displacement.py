import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk
import torch

from regnet.errors import InputError
from regnet.io import read_displacement, read_image, read_transform, write_displacement, write_image, write_transform
from regnet.spatial import Displacement, Grid
from tests.spatial.worlds import centres, fixed_grid, moving_grid, smooth_flow, waves


def save_field(path, array, intent, affine=None, codes=1):
    image = nib.Nifti1Image(array, np.eye(4) if affine is None else affine)
    image.set_sform(image.affine, codes)
    image.header.set_intent(intent)
    nib.save(image, path)
    return path


@pytest.mark.parametrize("ndim", (2, 3))
def test_a_field_comes_back_in_voxels(tmp_path, ndim):
    grid = fixed_grid(ndim)
    flow = smooth_flow(grid)
    write_displacement(tmp_path / "new/warp.nii.gz", flow, grid.affine)
    back, affine = read_displacement(tmp_path / "new/warp.nii.gz")
    assert back.dtype == torch.float32 and affine.dtype == torch.float64
    assert torch.allclose(back, flow, atol=1e-5)
    assert Grid(grid.shape, affine).matches(grid, 1e-4)
    again = read_transform(tmp_path / "new/warp.nii.gz")
    assert torch.equal(again.flow, back) and torch.equal(again.grid.affine, affine)


def test_numpy_arrays_are_written_too(tmp_path):
    flow = np.random.default_rng(0).normal(size=(3, 4, 5, 6))
    write_displacement(tmp_path / "warp.nii", flow, np.diag([2.0, 3, 4, 1]))
    assert np.allclose(read_displacement(tmp_path / "warp.nii")[0], flow, atol=1e-6)


def test_on_disk_it_is_float32_lps_millimetres_with_intent_1007(tmp_path):
    # One voxel along the first axis, which points left by 2 mm: -2 mm in RAS, +2 in LPS. The second points back by
    # 3 mm: +3 in LPS. The third points up by 4 mm in both.
    affine = torch.diag(torch.tensor([-2.0, -3.0, 4.0, 1.0], dtype=torch.float64))
    flow = torch.tensor([1.0, 0.5, -0.25]).reshape(3, 1, 1, 1).expand(3, 6, 5, 4)
    write_displacement(tmp_path / "warp.nii.gz", flow, affine)
    stored = nib.load(tmp_path / "warp.nii.gz")
    assert stored.header["dim"].tolist() == [5, 6, 5, 4, 1, 3, 1, 1]
    assert int(stored.header["intent_code"]) == 1007
    assert stored.header.get_data_dtype() == np.float32
    assert np.isnan(stored.header["scl_slope"]) or stored.header["scl_slope"] in (0, 1)
    assert (int(stored.header["sform_code"]), int(stored.header["qform_code"])) == (1, 1)
    assert np.asarray(stored.dataobj)[3, 2, 1, 0].tolist() == [2.0, 1.5, -1.0]


@pytest.mark.parametrize(("intent", "expected"), [(1006, (-1, -2, -3)), (1007, (1, 2, -3))])
def test_the_intent_says_which_way_the_components_point(tmp_path, intent, expected):
    array = np.tile(np.array([-1, -2, -3], np.float32), (6, 5, 4, 1, 1))
    path = save_field(tmp_path / "a.nii", array, intent)
    ras = read_transform(path).displacement_mm()
    assert ras[:, 3, 2, 1].tolist() == list(expected)
    lps = sitk.GetArrayFromImage(sitk.ReadImage(str(path)))[1, 2, 3]
    assert (lps * [-1, -1, 1]).tolist() == list(expected)


@pytest.mark.parametrize("ndim", (2, 3))
def test_a_field_written_by_itk_means_the_same_to_us(tmp_path, ndim):
    grid = fixed_grid(ndim)
    transform = Displacement(smooth_flow(grid), grid)
    write_transform(tmp_path / "ours.nii.gz", transform)
    image = sitk.ReadImage(str(tmp_path / "ours.nii.gz"), sitk.sitkVectorFloat64)
    assert image.GetDimension() == ndim and image.GetNumberOfComponentsPerPixel() == ndim
    sitk.WriteImage(image, str(tmp_path / "theirs.nii.gz"))
    back = read_transform(tmp_path / "theirs.nii.gz")
    assert torch.allclose(back.flow, transform.flow, atol=1e-4)
    assert back.grid.matches(grid, 1e-3)


@pytest.mark.parametrize("ndim", (2, 3))
@pytest.mark.parametrize("elsewhere", (False, True))
def test_simpleitk_applies_our_field_with_our_result(tmp_path, ndim, elsewhere):
    fixed, moving = fixed_grid(ndim), moving_grid(ndim)
    transform = Displacement(smooth_flow(fixed), fixed)
    # Elsewhere: a reference other than the field's grid, inside it, where ITK has to interpolate the field.
    reference = fixed.window((3, 4, 2)[:ndim], (17, 21, 12)[:ndim]).coarser(0.8) if elsewhere else fixed
    image = waves(moving)
    write_image(tmp_path / "moving.nii.gz", image[0], moving)
    write_image(tmp_path / "reference.nii.gz", torch.zeros(reference.shape), reference)
    write_transform(tmp_path / "warp.nii.gz", transform)

    field = sitk.DisplacementFieldTransform(sitk.ReadImage(str(tmp_path / "warp.nii.gz"), sitk.sitkVectorFloat64))
    theirs = sitk.Resample(
        sitk.ReadImage(str(tmp_path / "moving.nii.gz")),
        sitk.ReadImage(str(tmp_path / "reference.nii.gz")),
        field,
        sitk.sitkLinear,
        -20.0,
    )
    theirs = torch.from_numpy(sitk.GetArrayFromImage(theirs)).permute(*reversed(range(ndim)))
    ours = transform.apply(image, moving, reference, background=-20.0)[0, 0]

    # Voxels that fall within a tenth of a voxel of the edge of the moving image may be in view for one of us alone.
    at = moving.to_voxel(transform.map_points(centres(reference)))
    size = torch.tensor(moving.shape)
    near_edge = (((at + 0.5).abs() < 0.1) | ((at - size + 0.5).abs() < 0.1)).any(dim=-1)
    difference = (ours - theirs).abs()[~near_edge]
    assert float(near_edge.float().mean()) < 0.1
    assert float(difference.max()) < 1e-3 * 100
    outside = ours == -20.0
    assert 0.3 * ours.numel() < int((~outside).sum())
    # It is the field that does it: without it the images differ by far more.
    still = Displacement.identity(fixed).apply(image, moving, reference, background=-20.0)[0, 0]
    assert float((still - theirs).abs().mean()) > 3


@pytest.mark.parametrize("ndim", (2, 3))
def test_simpleitk_maps_points_as_we_do(tmp_path, ndim):
    grid = fixed_grid(ndim)
    write_transform(tmp_path / "warp.nii.gz", Displacement(smooth_flow(grid), grid))
    ours = read_transform(tmp_path / "warp.nii.gz")
    image = sitk.ReadImage(str(tmp_path / "warp.nii.gz"), sitk.sitkVectorFloat64)
    theirs = sitk.DisplacementFieldTransform(image)
    flip = torch.tensor([-1.0, -1.0, 1.0], dtype=torch.float64)[:ndim]
    points = grid.to_world(torch.rand(20, ndim, generator=torch.Generator().manual_seed(0)) * 12 + 2)
    expected = torch.tensor([theirs.TransformPoint(p) for p in (points * flip).tolist()], dtype=torch.float64) * flip
    assert (ours.map_points(points) - expected).abs().max() < 1e-3


def test_the_field_has_the_codes_of_the_fixed_image_and_not_its_type(tmp_path):
    grid = fixed_grid(3)
    stored = nib.Nifti1Image(np.zeros(grid.shape, np.uint8), grid.affine.numpy())
    stored.set_sform(stored.affine, 4)
    stored.set_qform(stored.affine, 1)
    stored.header.set_slope_inter(0.5, 3)
    nib.save(stored, tmp_path / "fixed.nii")
    flow = torch.linspace(-0.5, 0.5, 3 * grid.voxels).reshape(3, *grid.shape)
    write_transform(tmp_path / "warp.nii", Displacement(flow, grid), read_image(tmp_path / "fixed.nii"))
    header = nib.load(tmp_path / "warp.nii").header
    assert (int(header["sform_code"]), int(header["qform_code"])) == (4, 1)
    assert header.get_data_dtype() == np.float32
    assert torch.allclose(read_displacement(tmp_path / "warp.nii")[0], flow, atol=1e-6)


def test_a_field_says_where_it_lies_though_the_fixed_image_does_not(tmp_path):
    nib.save(nib.Nifti1Image(np.ones((4, 5, 6), np.float32), None), tmp_path / "fixed.nii")
    with pytest.warns(UserWarning, match="neither sform nor qform"):
        fixed = read_image(tmp_path / "fixed.nii")
    write_transform(tmp_path / "warp.nii", Displacement.identity(fixed.grid), fixed)
    assert torch.equal(read_transform(tmp_path / "warp.nii").grid.affine, fixed.grid.affine)


@pytest.mark.parametrize(
    ("shape", "intent", "reason"),
    [
        ((6, 5, 4, 3), 1007, "has the shape"),
        ((6, 5, 4, 1, 2), 1007, "has the shape"),
        ((6, 5, 4, 2, 3), 1007, "has the shape"),
        ((6, 5, 4), 0, "has the shape"),
        ((6, 5, 4, 1, 3), 0, "intent 0"),
        ((6, 5, 4, 1, 3), 2006, "intent 2006"),
    ],
)
def test_a_file_that_is_no_field_is_refused_by_name(tmp_path, shape, intent, reason):
    path = save_field(tmp_path / "a.nii.gz", np.zeros(shape, np.float32), intent)
    with pytest.raises(InputError, match=rf"a\.nii\.gz: .*{reason}"):
        read_displacement(path)


def test_a_missing_damaged_or_nan_field_is_refused_by_name(tmp_path):
    array = np.random.default_rng(0).normal(size=(6, 5, 4, 1, 3)).astype(np.float32)
    whole = save_field(tmp_path / "whole.nii.gz", array, 1007).read_bytes()
    (tmp_path / "cut.nii.gz").write_bytes(whole[: len(whole) // 2])
    array[1, 2, 3] = np.nan
    save_field(tmp_path / "nan.nii.gz", array, 1007)
    for name, reason in {"none": "no such file", "cut": "truncated", "nan": "NaN"}.items():
        with pytest.raises(InputError, match=rf"{name}\.nii\.gz: .*{reason}"):
            read_displacement(tmp_path / f"{name}.nii.gz")


def test_a_field_that_makes_no_sense_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="one channel per spatial axis"):
        write_displacement(tmp_path / "a.nii", torch.zeros(2, 4, 5, 6), torch.eye(4))
    with pytest.raises(InputError, match=r"\.nii or \.nii\.gz"):
        write_displacement(tmp_path / "a.png", torch.zeros(2, 4, 5), torch.eye(3))
    write_displacement(tmp_path / "a.nii", torch.zeros(2, 4, 5), torch.eye(3))
    with pytest.raises(InputError, match="exists already"):
        write_transform(tmp_path / "a.nii", read_transform(tmp_path / "a.nii"), overwrite=False)
