"""``regnet apply``: images and label maps along transforms, in the order of ANTs."""

import math
from pathlib import Path

import nibabel
import numpy as np
import pytest
import SimpleITK as sitk
import torch

from regnet.io import read_image, read_labels, write_image, write_transform
from regnet.spatial import Displacement, Grid, Transform
from tests.inference.heads import centred, head, points

from .command import refused, regnet, write_pair


def turn_about(grid: Grid, plane: tuple[int, int], degrees: float) -> Transform:
    """The map that turns the world about the grid's centre: the first axis of ``plane`` towards the second."""
    matrix = torch.eye(3, dtype=torch.float64)
    a, b = plane
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    matrix[a, a], matrix[a, b], matrix[b, a], matrix[b, b] = c, -s, s, c
    world = points(grid)
    centre = grid.to_world(torch.tensor([(n - 1) / 2 for n in grid.shape]))
    there = (world - centre) @ matrix.T + centre
    return Displacement((grid.to_voxel(there) - grid.to_voxel(world)).movedim(-1, 0).float(), grid)


@pytest.fixture
def two_turns(tmp_path: Path) -> Path:
    """One bright voxel at (3, 2, 2) of 5 x 5 x 5, and turns by 90 degrees: a (axis 0 to 1), b (axis 1 to 2)."""
    grid = Grid((5, 5, 5), torch.eye(4))
    bright = torch.zeros(5, 5, 5)
    bright[3, 2, 2] = 1
    write_image(tmp_path / "bright.nii.gz", bright, grid)
    write_transform(tmp_path / "a.nii.gz", turn_about(grid, (0, 1), 90), grid)
    write_transform(tmp_path / "b.nii.gz", turn_about(grid, (1, 2), 90), grid)
    return tmp_path


def brightest(path: Path) -> tuple[int, ...]:
    data = read_image(path).data[0]
    index = torch.unravel_index(data.argmax(), data.shape)
    return tuple(int(i) for i in index)


def test_two_turns_at_once_are_one_after_the_other(two_turns: Path) -> None:
    # out(p) = I(c + M (p - c)): by a, then the result by b, samples I at A B p, so the point goes through b first.
    bright, first, both = (two_turns / f"{name}.nii.gz" for name in ("bright", "first", "both"))
    common = ("--reference", bright, "--interp", "nearest")
    assert regnet("apply", "--moving", bright, *common, "-t", two_turns / "a.nii.gz", "--out", first) == 0
    assert regnet("apply", "--moving", first, *common, "-t", two_turns / "b.nii.gz", "--out", both) == 0
    assert brightest(both) == (2, 2, 3)
    once = two_turns / "once.nii.gz"
    order = ("-t", two_turns / "b.nii.gz", "-t", two_turns / "a.nii.gz")
    assert regnet("apply", "--moving", bright, *common, *order, "--out", once) == 0
    assert brightest(once) == (2, 2, 3)
    order = ("-t", two_turns / "a.nii.gz", "-t", two_turns / "b.nii.gz")
    assert regnet("apply", "--moving", bright, *common, *order, "--out", once, "--overwrite") == 0
    assert brightest(once) == (2, 1, 2)


def test_simpleitk_composes_the_same_transforms_to_the_same_image(tmp_path: Path) -> None:
    grid = centred((20, 24, 18), (1.0, 1.25, 1.5), turn=11)
    write_image(tmp_path / "moving.nii.gz", head(grid, 9).data, grid)
    for name, plane, degrees in (("a", (0, 1), 6), ("b", (1, 2), -8)):
        write_transform(tmp_path / f"{name}.nii.gz", turn_about(grid, plane, degrees), grid)
    out = tmp_path / "out.nii.gz"
    files = [tmp_path / "a.nii.gz", tmp_path / "b.nii.gz"]
    image = tmp_path / "moving.nii.gz"
    assert regnet("apply", "--moving", image, "--reference", image, "-t", files[0], "-t", files[1], "--out", out) == 0
    ours = read_image(out).data[0]
    both = sitk.CompositeTransform(
        [  # the last of ITK's list is applied first
            sitk.DisplacementFieldTransform(sitk.ReadImage(str(file), sitk.sitkVectorFloat64))
            for file in reversed(files)
        ]
    )
    theirs = sitk.Resample(sitk.ReadImage(str(image)), sitk.ReadImage(str(image)), both, sitk.sitkLinear, 0.0)
    theirs = torch.from_numpy(sitk.GetArrayFromImage(theirs)).permute(2, 1, 0).float()
    inside = points(grid).norm(dim=-1) < 10  # beyond its grid ITK's field ends, ours goes on as at its edge
    assert float((ours - theirs).abs()[inside].max() / ours.max()) < 1e-3


def test_a_transform_and_its_inverse_bring_the_image_back(tmp_path: Path) -> None:
    grid = centred((24, 26, 22))
    image = tmp_path / "moving.nii.gz"
    write_image(image, head(grid, 9).data, grid)
    write_transform(tmp_path / "a.nii.gz", turn_about(grid, (0, 1), 10), grid)
    order = ("-t", tmp_path / "a.nii.gz", "-t", f"{tmp_path / 'a.nii.gz'}:inverse")
    out = tmp_path / "out.nii.gz"
    assert regnet("apply", "--moving", image, "--reference", image, *order, "--out", out) == 0
    difference = (read_image(out).data - read_image(image).data)[0].abs()
    assert float(difference[points(grid).norm(dim=-1) < 10].max()) < 1.0  # of about 120


def test_without_a_transform_the_image_stays_where_it_is_in_the_world(tmp_path: Path) -> None:
    grid, other = centred((30, 30, 26)), centred((22, 24, 20), (1.3, 1.2, 1.1), turn=15)
    write_image(tmp_path / "moving.nii.gz", head(grid, 9).data, grid)
    write_image(tmp_path / "reference.nii.gz", torch.zeros(other.shape), other)
    out = tmp_path / "out.nii.gz"
    words = ("--moving", tmp_path / "moving.nii.gz", "--reference", tmp_path / "reference.nii.gz", "--interp", "cubic")
    assert regnet("apply", *words, "--out", out) == 0
    moved = read_image(out)
    assert moved.grid.matches(other)
    inside = points(other).norm(dim=-1) < 10
    difference = (moved.data - head(other, 9).data)[0].abs()[inside]
    assert float(difference.max()) < 3.0


@pytest.mark.parametrize(("interp", "limit"), [("linear", 15.0), ("cubic", 2.0)])
def test_cubic_is_nearer_to_the_truth_than_linear(tmp_path: Path, interp: str, limit: float) -> None:
    grid = centred((30, 30, 26))
    half = Displacement(torch.full((3, *grid.shape), 0.5), grid)
    image, out = tmp_path / "moving.nii.gz", tmp_path / "out.nii.gz"
    write_image(image, head(grid, 9).data, grid)
    write_transform(tmp_path / "half.nii.gz", half, grid)
    words = ("--moving", image, "--reference", image, "-t", tmp_path / "half.nii.gz", "--interp", interp)
    assert regnet("apply", *words, "--out", out) == 0
    truth = head(grid, 9, lambda x: x + 0.5).data
    assert float((read_image(out).data - truth)[0].abs()[points(grid).norm(dim=-1) < 9].max()) < limit


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "uint16"])
@pytest.mark.parametrize("interp", ["nearest", "label"])
def test_labels_are_never_mixed_and_keep_their_type(tmp_path: Path, dtype: str, interp: str) -> None:
    values = np.random.default_rng(1).choice([0, 7, 41], size=(8, 9, 10)).astype(dtype)
    file, out = tmp_path / "labels.nii.gz", tmp_path / "out.nii.gz"
    nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), file)
    grid = read_labels(file).grid
    write_transform(tmp_path / "t.nii.gz", Displacement(torch.full((3, 8, 9, 10), 0.4), grid), grid)
    words = ("--moving", file, "--reference", file, "-t", tmp_path / "t.nii.gz", "--interp", interp)
    assert regnet("apply", *words, "--out", out) == 0
    stored = nibabel.load(out)
    assert stored.get_data_dtype() == np.dtype(dtype)
    moved = np.asarray(stored.dataobj)
    assert set(np.unique(moved)) <= {0, 7, 41}
    if interp == "nearest":  # 0.4 of a voxel rounds to none
        np.testing.assert_array_equal(moved, values)


@pytest.mark.parametrize("interp", ["nearest", "label"])
@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_large_labels_are_exact(tmp_path: Path, dtype: type, interp: str) -> None:
    values = np.full((6, 6, 6), 2**24 + 1, dtype=dtype)
    file, out = tmp_path / "labels.nii.gz", tmp_path / "out.nii.gz"
    nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), file)
    assert regnet("apply", "--moving", file, "--reference", file, "--interp", interp, "--out", out) == 0
    np.testing.assert_array_equal(np.asarray(nibabel.load(out).dataobj), values)


@pytest.mark.parametrize("interp", ["nearest", "linear", "cubic", "label"])
def test_outside_the_view_comes_the_background_never_a_mirrored_image(tmp_path: Path, interp: str) -> None:
    values = np.random.default_rng(1).integers(50, 60, size=(8, 9, 10)).astype("uint8")
    file, reference, out = tmp_path / "image.nii.gz", tmp_path / "reference.nii.gz", tmp_path / "out.nii.gz"
    nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), file)
    wide = Grid((8, 9, 10), torch.eye(4)).window((-6, -6, -6), (20, 21, 22))
    write_image(reference, torch.zeros(wide.shape), wide)
    for asked, expected in ((), 0), (("--background", 3), 3):
        words = ("--moving", file, "--reference", reference, "--interp", interp, *asked)
        assert regnet("apply", *words, "--out", out, "--overwrite") == 0
        moved = read_image(out).data[0]
        inside = torch.zeros_like(moved, dtype=torch.bool)
        inside[6:14, 6:15, 6:16] = True
        assert set(moved[~inside].unique().tolist()) == {expected}
        torch.testing.assert_close(moved[inside].reshape(8, 9, 10), torch.from_numpy(values).float(), atol=1e-3, rtol=0)


def test_the_background_of_an_image_below_zero_is_its_minimum(tmp_path: Path) -> None:
    file, reference, out = tmp_path / "ct.nii.gz", tmp_path / "reference.nii.gz", tmp_path / "out.nii.gz"
    values = np.linspace(-1000, 500, 6 * 7 * 8).reshape(6, 7, 8).astype(np.float32)
    nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), file)
    wide = Grid((6, 7, 8), torch.eye(4)).window((-4, 0, 0), (10, 7, 8))
    write_image(reference, torch.zeros(wide.shape), wide)
    assert regnet("apply", "--moving", file, "--reference", reference, "--out", out) == 0
    assert read_image(out).data[0, 0].unique().tolist() == [-1000]


def test_bad_input_is_named_and_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moving, fixed, labels = write_pair(tmp_path)
    out = tmp_path / "out" / "moved.nii.gz"
    good = ("apply", "--moving", moving, "--reference", fixed, "--out", out)
    missing, empty, short = tmp_path / "missing.nii.gz", tmp_path / "empty.nii.gz", tmp_path / "short.nii.gz"
    empty.write_bytes(b"")
    short.write_bytes(moving.read_bytes()[:2000])
    for bad in (missing, empty, short):
        assert str(bad) in refused(capsys, "apply", "--moving", bad, "--reference", fixed, "--out", out)
        assert str(bad) in refused(capsys, "apply", "--moving", moving, "--reference", bad, "--out", out)
        assert str(bad) in refused(capsys, *good, "-t", bad)
    assert str(moving) in refused(capsys, *good, "-t", moving)
    assert "whole number" in refused(capsys, *good, "--interp", "label")
    label_words = ("apply", "--moving", labels, "--reference", fixed, "--interp", "label", "--out", out)
    for background in (0.5, "nan", "inf", 1e30, 40000):
        assert "--background" in refused(capsys, *label_words, "--background", background)
    assert f"{moving}: is an input" in refused(capsys, *good[:5], "--out", moving, "--overwrite")
    flat, grid = tmp_path / "flat.nii.gz", Grid((24, 30), torch.eye(3))
    write_image(flat, torch.rand(grid.shape), grid)
    assert f"{flat}: is 2-D" in refused(capsys, "apply", "--moving", flat, "--reference", fixed, "--out", out)
    write_transform(flat, Displacement.identity(grid))
    assert f"{flat}: is 2-D" in refused(capsys, *good, "-t", flat, "-t", flat)
    assert "out.xyz" in refused(capsys, *good[:5], "--out", tmp_path / "out.xyz")
    assert not out.exists()


def test_folders_of_the_output_are_made(tmp_path: Path) -> None:
    moving, fixed, _ = write_pair(tmp_path)
    out = tmp_path / "a" / "b" / "moved.nii.gz"
    assert regnet("apply", "--moving", moving, "--reference", fixed, "--out", out) == 0
    assert out.is_file()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_voxel_that_is_no_number_spoils_its_neighbours_only(tmp_path: Path, value: float) -> None:
    values = np.random.default_rng(1).normal(size=(6, 7, 8)).astype(np.float32)
    values[2, 3, 4] = value
    file, reference, out = tmp_path / "image.nii.gz", tmp_path / "reference.nii.gz", tmp_path / "out.nii.gz"
    nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), file)
    wide = Grid((6, 7, 8), torch.eye(4)).window((-4.5, 0, 0), (12, 7, 8))
    write_image(reference, torch.zeros(wide.shape), wide)
    assert regnet("apply", "--moving", file, "--reference", reference, "--out", out) == 0
    moved = read_image(out).data[0]
    assert int((~moved.isfinite()).sum()) <= 8
    assert moved[0].unique().tolist() == [pytest.approx(values[np.isfinite(values)].min())]


def test_a_field_without_an_inverse_is_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # x + u(x) = 10: everything goes to one plane, and nothing to the others
    grid = Grid((20, 21, 22), torch.eye(4))
    flow = torch.zeros(3, *grid.shape)
    flow[0] = 10 - torch.arange(20.0)[:, None, None]
    write_transform(tmp_path / "folds.nii.gz", Displacement(flow, grid), grid)
    write_image(tmp_path / "image.nii.gz", torch.rand(grid.shape), grid)
    words = ("--moving", tmp_path / "image.nii.gz", "--reference", tmp_path / "image.nii.gz")
    assert regnet("apply", *words, "-t", f"{tmp_path / 'folds.nii.gz'}:inverse", "--out", tmp_path / "out.nii.gz") == 0
    assert "of the voxels have no inverse" in capsys.readouterr().err
