"""``regnet apply`` on images of every kind: spline orders, series, vectors, other formats, slabs, orientations."""

import sys
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import scipy.ndimage
import SimpleITK as sitk
import torch

from regnet.cli import apply_image
from regnet.io import Image, read_image, read_labels, write_image, write_transform
from regnet.spatial import Displacement, Grid
from tests.inference.heads import centred, head, label_map, points
from tests.spatial.worlds import fixed_grid, moving_grid, ramp, rotation, smooth_flow, waves

from .command import refused, regnet


def save(path: Path, array: np.ndarray, affine: np.ndarray, intent: int = 0, codes: tuple[int, int] = (1, 1)) -> Path:
    image = nib.Nifti1Image(array, affine)
    image.set_sform(affine, codes[0])
    image.set_qform(affine, codes[1])
    image.header["intent_code"] = intent
    nib.save(image, path)
    return path


def warp_file(folder: Path, grid: Grid) -> Path:
    write_transform(folder / "warp.nii.gz", Displacement(smooth_flow(grid, 2.0), grid), grid)
    return folder / "warp.nii.gz"


def linear_map(folder: Path, grid: Grid, matrix: torch.Tensor) -> Path:
    """The warp that multiplies the world by a matrix about its origin."""
    world = points(grid)
    flow = (grid.to_voxel(world @ matrix.T) - grid.to_voxel(world)).movedim(-1, 0)
    write_transform(folder / "linear.nii.gz", Displacement(flow.float(), grid), grid)
    return folder / "linear.nii.gz"


@pytest.mark.parametrize("order", range(8))
def test_any_order_is_the_spline_that_scipy_has(tmp_path: Path, order: int) -> None:
    """Away from the border. scipy ends at order 5; 6 and 7 are held to a smooth image, which any high order keeps."""
    grid, other = fixed_grid(3), moving_grid(3)
    image = head(other, 9) if order <= 5 else Image(waves(other)[0], other)
    write_image(tmp_path / "moving.nii.gz", image.data, other)
    write_image(tmp_path / "fixed.nii.gz", torch.zeros(grid.shape), grid)
    out = tmp_path / "out.nii.gz"
    words = ("--moving", tmp_path / "moving.nii.gz", "--reference", tmp_path / "fixed.nii.gz", "--interp", order)
    assert regnet("apply", *words, "--out", out) == 0
    ours = read_image(out).data[0]
    inside = points(grid).norm(dim=-1) < 8
    if order > 5:
        middle = (points(grid) - torch.tensor([2.0, -4.5, 8.0])).norm(dim=-1) < 6  # of both grids
        assert float((ours - waves(grid)[0, 0]).abs()[middle].max()) < 0.05  # of 100
        return
    there = torch.linalg.solve(other.affine, grid.affine).numpy()
    theirs = scipy.ndimage.affine_transform(
        image.data[0].double().numpy(), there[:3, :3], there[:3, 3], grid.shape, order=order, mode="mirror"
    )
    assert np.abs(ours.numpy() - theirs)[inside.numpy()].max() < 1e-3 * np.abs(theirs).max()


def test_the_result_is_the_same_in_slabs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grid, other = fixed_grid(3), moving_grid(3)
    write_image(tmp_path / "moving.nii.gz", head(other, 9).data, other)
    write_image(tmp_path / "labels.nii.gz", label_map(other, 9).data, other)
    write_image(tmp_path / "fixed.nii.gz", torch.zeros(grid.shape), grid)
    warp = warp_file(tmp_path, grid)
    for name, interp in (("moving", "cubic"), ("labels", "label"), ("labels", "nearest")):
        words = ("apply", "--moving", tmp_path / f"{name}.nii.gz", "--reference", tmp_path / "fixed.nii.gz", "-t", warp)
        assert regnet(*words, "--interp", interp, "--out", tmp_path / "whole.nii.gz", "--overwrite") == 0
        with monkeypatch.context() as patch:
            patch.setattr(apply_image, "_SLAB", 24 * 30 * 4)  # 17 planes: 4, 4, 4, 4, 1
            assert regnet(*words, "--interp", interp, "--out", tmp_path / "slabs.nii.gz", "--overwrite") == 0
        whole, slabs = (nib.load(tmp_path / f"{k}.nii.gz") for k in ("whole", "slabs"))
        assert whole.header == slabs.header
        difference = np.asarray(whole.dataobj).astype(float) - np.asarray(slabs.dataobj)
        if interp == "cubic":
            assert np.abs(difference).max() < 0.02  # of 120: places are float32's of another origin
        else:
            assert (difference != 0).mean() < 1e-3


@pytest.mark.parametrize("interp", ["linear", "nearest", "label"])
def test_a_series_is_its_volumes_one_by_one(tmp_path: Path, interp: str) -> None:
    grid, other = fixed_grid(3), moving_grid(3)
    rng = np.random.default_rng(0)
    series = rng.integers(0, 300, size=(*other.shape, 3)).astype(np.int16)
    moving = save(tmp_path / "series.nii.gz", series, other.affine.numpy())
    stored = nib.load(moving)
    stored.header["pixdim"][4] = 2.5
    stored.header.set_xyzt_units("mm", "sec")
    nib.save(nib.Nifti1Image(series, None, stored.header), moving)
    write_image(tmp_path / "fixed.nii.gz", torch.zeros(grid.shape), grid)
    words = ("--reference", tmp_path / "fixed.nii.gz", "-t", warp_file(tmp_path, grid), "--interp", interp)
    assert regnet("apply", "--moving", moving, *words, "--out", tmp_path / "out.nii.gz") == 0
    out = nib.load(tmp_path / "out.nii.gz")
    assert out.shape == (*grid.shape, 3)
    assert out.header.get_zooms()[3] == 2.5 and out.header.get_xyzt_units() == ("mm", "sec")
    assert out.get_data_dtype() == (np.float32 if interp == "linear" else np.int16)
    for k in range(3):
        single = save(tmp_path / "single.nii.gz", series[..., k], stored.affine)
        for name, extra in ((single, ()), (moving, ("--time-index", k))):
            words_out = ("--out", tmp_path / "one.nii.gz", "--overwrite", *extra)
            assert regnet("apply", "--moving", name, *words, *words_out) == 0
            one = nib.load(tmp_path / "one.nii.gz")
            assert one.shape == grid.shape
            np.testing.assert_array_equal(np.asarray(one.dataobj), np.asarray(out.dataobj)[..., k])


def test_what_a_series_cannot_do_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moving = save(tmp_path / "series.nii.gz", np.zeros((4, 5, 6, 2), np.float32), np.eye(4))
    words = ("apply", "--moving", moving, "--reference", moving)
    for index in (-1, 2):
        text = refused(capsys, *words, "--time-index", index, "--out", tmp_path / "o.nii")
        assert f"--time-index {index}" in text
    assert ".nii.gz" in refused(capsys, *words, "--out", tmp_path / "o.nrrd")
    assert "vectors need 3" in refused(capsys, *words, "--vectors", "jacobian", "--out", tmp_path / "o.nii")
    assert not list(tmp_path.glob("o.*"))


@pytest.mark.parametrize("ndim", [2, 3])
@pytest.mark.parametrize("intent", [1006, 1007, 0])
@pytest.mark.parametrize("mode", [None, "jacobian", "rotation"])
def test_vectors_turn_with_the_tissue(tmp_path: Path, ndim: int, intent: int, mode: str | None) -> None:
    """Under ``x -> M x`` an arrow ``v`` of the fixed image is ``M v`` in the moving one: ``w`` comes back as M^-1 w."""
    grid, other = centred((12, 14, 11)[:ndim]), centred((20, 22, 21)[:ndim], 1.25, turn=10)
    matrix = rotation(ndim, 25.0) @ torch.diag(torch.tensor([1.2, 0.9, 1.1], dtype=torch.float64)[:ndim])
    ras = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)[:ndim]
    sign = np.array([-1.0, -1.0, 1.0])[:ndim] if intent == 1007 else np.ones(ndim)
    axes = (1,) * (4 - ndim)  # (X, Y, 1, 1, 2), (X, Y, Z, 1, 3)
    constant = np.broadcast_to((sign * ras.numpy()).astype(np.float32), (*other.shape, *axes, ndim))
    affine = np.eye(4)
    placed = other.affine.numpy()
    affine[:ndim, :ndim], affine[:ndim, 3] = placed[:-1, :-1], placed[:-1, -1]
    moving = save(tmp_path / "vectors.nii.gz", constant, affine, intent)
    write_image(tmp_path / "fixed.nii.gz", torch.zeros(grid.shape), grid)
    words = ["--moving", moving, "--reference", tmp_path / "fixed.nii.gz", "-t", linear_map(tmp_path, grid, matrix)]
    if mode is not None:
        words += ["--vectors", mode]
    if not intent:
        words += ["--space", "ras", "--vectors", mode or "jacobian"]
    assert regnet("apply", *words, "--out", tmp_path / "out.nii.gz") == 0
    out = nib.load(tmp_path / "out.nii.gz")
    assert int(out.header["intent_code"]) == intent and out.shape == (*grid.shape, *axes, ndim)
    left, _, right = torch.linalg.svd(matrix)
    expected = (left @ right).T @ ras if mode == "rotation" else torch.linalg.solve(matrix, ras)
    inner = np.asarray(out.dataobj).reshape(*grid.shape, ndim)[(slice(2, -2),) * ndim]
    np.testing.assert_allclose(inner, np.broadcast_to(sign * expected.numpy(), inner.shape), atol=2e-4)


def test_vectors_of_no_stated_direction_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moving = save(tmp_path / "vectors.nii.gz", np.zeros((4, 5, 6, 3), np.float32), np.eye(4))
    words = ("apply", "--moving", moving, "--reference", moving, "--vectors", "rotation", "--out", tmp_path / "o.nii")
    assert "--space ras or lps" in refused(capsys, *words)
    assert "--space ras or lps" in refused(capsys, *words, "-t", tmp_path / "a_field_that_is_not_read_first.nii.gz")
    assert "--space ras or lps" in refused(capsys, *words, "--space", "voxel")
    assert "--interp label" in refused(capsys, *words, "--space", "ras", "--interp", "label")


@pytest.mark.parametrize("suffix", [".nrrd", ".mha", ".mgz", ".nii"])
def test_images_of_other_formats_go_in_and_out(tmp_path: Path, suffix: str) -> None:
    grid, other = fixed_grid(3), moving_grid(3)
    names = {}
    for kind in (".nii.gz", suffix):
        names[kind] = [tmp_path / f"{name}{kind}" for name in ("moving", "labels", "fixed", "out")]
        write_image(names[kind][0], head(other, 9).data, other)
        write_image(names[kind][1], label_map(other, 9).data, other)
        write_image(names[kind][2], torch.zeros(grid.shape), grid)
    warp = warp_file(tmp_path, grid)
    for which, interp, read in ((0, "cubic", read_image), (1, "label", read_labels)):
        results = []
        for files in names.values():
            words = ("--moving", files[which], "--reference", files[2], "-t", warp, "--interp", interp)
            assert regnet("apply", *words, "--out", files[3], "--overwrite") == 0
            results.append(read(files[3]))
        assert results[0].grid.matches(results[1].grid)
        difference = (results[0].data.double() - results[1].data).abs()
        assert float(difference.max()) < 0.05 if interp == "cubic" else float((difference > 0).double().mean()) < 1e-3


def test_simpleitk_sees_an_nrrd_file_where_the_nifti_file_is(tmp_path: Path) -> None:
    grid = fixed_grid(3)
    images = []
    for suffix in (".nii.gz", ".nrrd", ".mha"):
        write_image(tmp_path / f"a{suffix}", head(grid, 9).data, grid)
        images.append(sitk.ReadImage(str(tmp_path / f"a{suffix}")))
    for image in images[1:]:
        for get in ("GetOrigin", "GetSpacing", "GetDirection"):
            np.testing.assert_allclose(getattr(image, get)(), getattr(images[0], get)(), atol=1e-4)
        np.testing.assert_array_equal(sitk.GetArrayViewFromImage(image), sitk.GetArrayViewFromImage(images[0]))


def test_without_simpleitk_its_files_are_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = fixed_grid(3)
    write_image(tmp_path / "a.mha", head(grid, 9).data, grid)
    monkeypatch.setitem(sys.modules, "SimpleITK", None)
    words = ("apply", "--moving", tmp_path / "a.mha", "--reference", tmp_path / "a.mha", "--out", tmp_path / "o.nii")
    assert "pip install 'regnet[itk]'" in refused(capsys, *words)


@pytest.mark.parametrize("axes", ["PIR", "LAS", "RAS"])
def test_c48_the_result_has_the_orientation_of_the_fixed_image(tmp_path: Path, axes: str) -> None:
    moving = save(tmp_path / "moving.nii.gz", head(moving_grid(3), 9).data[0].numpy(), moving_grid(3).affine.numpy())
    plain = nib.Nifti1Image(np.zeros((20, 24, 22), np.float32), centred((20, 24, 22), (1.0, 1.25, 1.5)).affine.numpy())
    turn = nib.orientations.ornt_transform(
        nib.orientations.io_orientation(plain.affine), nib.orientations.axcodes2ornt(tuple(axes))
    )
    nib.save(plain.as_reoriented(turn), tmp_path / "fixed.nii.gz")
    out = tmp_path / "out.nii.gz"
    assert regnet("apply", "--moving", moving, "--reference", tmp_path / "fixed.nii.gz", "--out", out) == 0
    result = nib.load(out)
    assert "".join(nib.aff2axcodes(result.affine)) == axes
    there = np.linalg.solve(nib.load(moving).affine, result.affine)
    theirs = scipy.ndimage.affine_transform(
        np.asarray(nib.load(moving).dataobj), there[:3, :3], there[:3, 3], result.shape, order=1
    )
    inside = points(Grid(result.shape, torch.from_numpy(result.affine))).norm(dim=-1).numpy() < 8
    assert np.abs(np.asarray(result.dataobj) - theirs)[inside].max() < 1e-3 * theirs.max()


@pytest.mark.parametrize("codes", [(1, 1), (4, 1), (2, 0)])
def test_c44_the_result_has_the_codes_of_the_fixed_image(tmp_path: Path, codes: tuple[int, int]) -> None:
    grid = fixed_grid(3)
    fixed = save(tmp_path / "fixed.nii.gz", np.zeros((*grid.shape, 2), np.uint8), grid.affine.numpy(), codes=codes)
    write_image(tmp_path / "moving.nii.gz", ramp(grid)[0, 0], grid)
    out = tmp_path / "out.nii.gz"
    assert regnet("apply", "--moving", tmp_path / "moving.nii.gz", "--reference", fixed, "--out", out) == 0
    header = nib.load(out).header
    assert (int(header["sform_code"]), int(header["qform_code"])) == codes
    assert header.get_data_dtype() == np.float32  # not the uint8 of the fixed image (C-41)


def test_c43_slope_and_intercept_are_applied_and_not_inherited(tmp_path: Path) -> None:
    raw = np.zeros((4, 5, 6), np.int16)
    raw[2:] = 100
    moving = tmp_path / "moving.nii"
    nib.save(nib.Nifti1Image(raw, np.eye(4)), moving)
    stored = bytearray(moving.read_bytes())
    stored[112:120] = np.array([2, -1024], "<f4").tobytes()  # scl_slope, scl_inter
    moving.write_bytes(stored)
    for interp in ("linear", "nearest", "label"):
        words = ("--moving", moving, "--reference", moving, "--interp", interp, "--out", tmp_path / "out.nii")
        assert regnet("apply", *words, "--overwrite") == 0
        out = nib.load(tmp_path / "out.nii")
        assert np.unique(np.asarray(out.dataobj)).tolist() == [-1024, -824]
        assert (out.dataobj.slope, out.dataobj.inter) == (1, 0)
    assert out.get_data_dtype() == np.int16


@pytest.mark.filterwarnings("default")
def test_c45_a_file_whose_sform_and_qform_disagree_is_named_and_its_sform_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    affine, other = np.eye(4), np.eye(4)
    affine[:3, 3], other[:3, 3] = (-10, -20, -30), (-9.3, -20, -30)
    for codes in ((1, 1), (2, 1)):
        image = nib.Nifti1Image(np.zeros((4, 5, 6), np.float32), affine)
        image.set_sform(affine, codes[0])
        image.set_qform(other, codes[1])
        nib.save(image, tmp_path / "fixed.nii")
        words = ("--moving", tmp_path / "fixed.nii", "--reference", tmp_path / "fixed.nii", "--overwrite")
        assert regnet("apply", *words, "--out", tmp_path / "out.nii") == 0
        told = capsys.readouterr().err.splitlines()
        assert told and all(
            f"{tmp_path / 'fixed.nii'}: sform and qform differ by up to 0.7 mm" in line for line in told
        )
        header = nib.load(tmp_path / "out.nii").header
        assert np.allclose(header.get_sform(), affine) and np.allclose(header.get_qform(), affine)


@pytest.mark.parametrize("shape", [(16, 12, 10, 1), (16, 12, 1), (16, 12)])
def test_c51_axes_of_length_one_are_no_axes(tmp_path: Path, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).normal(100, 10, shape).astype(np.float32)
    moving = save(tmp_path / "moving.nii.gz", values, np.diag([-1.0, 1, 1, 1]))
    assert regnet("apply", "--moving", moving, "--reference", moving, "--out", tmp_path / "out.nii.gz") == 0
    out = nib.load(tmp_path / "out.nii.gz")
    assert out.shape == (shape[:3] if len(shape) == 4 else shape)
    np.testing.assert_allclose(np.asarray(out.dataobj).reshape(shape), values, atol=1e-4)
