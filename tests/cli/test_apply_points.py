"""``regnet apply --points``: both directions, every space and kind of file, beside ANTs and SimpleITK."""

import csv
import json
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk
import torch
from torch import Tensor

from regnet.io import read_points, read_transform, write_image, write_transform
from regnet.spatial import Displacement, Grid
from tests.spatial.worlds import fixed_grid, moving_grid, smooth_flow

from .command import refused, regnet

LPS = torch.tensor([-1.0, -1.0, 1.0], dtype=torch.float64)


def inner_points(grid: Grid, count: int = 12) -> Tensor:
    """Places well within a grid, RAS mm."""
    share = torch.rand(count, grid.ndim, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    return grid.to_world((0.25 + 0.5 * share) * (torch.tensor(grid.shape) - 1))


def write_ants(path: Path, ras: Tensor) -> Path:
    """A table as ANTs takes it: LPS, with all its columns and one of our own."""
    lps = torch.nn.functional.pad(ras * LPS[: ras.shape[1]], (0, 3 - ras.shape[1])).tolist()
    rows = [[*(f"{x:.7f}" for x in point), "0", str(k), f"p{k}"] for k, point in enumerate(lps)]
    path.write_text("\n".join(",".join(row) for row in [["x", "y", "z", "t", "label", "comment"], *rows]) + "\n")
    return path


def read_ants(path: Path, ndim: int) -> Tensor:
    rows = list(csv.DictReader(path.read_text("utf-8").splitlines()))
    return torch.tensor([[float(row[axis]) for axis in "xyz"[:ndim]] for row in rows], dtype=torch.float64)


@pytest.fixture
def warp(tmp_path: Path) -> Path:
    grid = fixed_grid(3)
    write_transform(tmp_path / "warp.nii.gz", Displacement(smooth_flow(grid, 3.0), grid), grid)
    return tmp_path / "warp.nii.gz"


@pytest.mark.parametrize("ndim", [2, 3])
def test_points_go_where_simpleitk_takes_them(tmp_path: Path, ndim: int) -> None:
    grid = fixed_grid(ndim)
    write_transform(tmp_path / "warp.nii.gz", Displacement(smooth_flow(grid, 3.0), grid), grid)
    ras = inner_points(grid)
    table = write_ants(tmp_path / "points.csv", ras)
    out = tmp_path / "out.csv"
    assert regnet("apply", "--points", table, "-t", tmp_path / "warp.nii.gz", "--out", out) == 0
    field = sitk.DisplacementFieldTransform(sitk.ReadImage(str(tmp_path / "warp.nii.gz"), sitk.sitkVectorFloat64))
    lps = ras * LPS[:ndim]
    theirs = torch.tensor([field.TransformPoint(point) for point in lps.tolist()], dtype=torch.float64)
    assert float((read_ants(out, ndim) - theirs).norm(dim=1).max()) < 1e-3
    assert float((theirs - lps).norm(dim=1).min()) > 0.1
    # all else stands as it was
    before, after = (list(csv.DictReader(path.read_text("utf-8").splitlines())) for path in (table, out))
    assert [(r["t"], r["label"], r["comment"]) for r in before] == [(r["t"], r["label"], r["comment"]) for r in after]


@pytest.mark.parametrize("chain", [("warp",), ("warp", "warp"), ("warp:inverse", "warp"), ()])
def test_points_to_moving_and_back_are_where_they_were(tmp_path: Path, warp: Path, chain: tuple[str, ...]) -> None:
    ras = inner_points(fixed_grid(3))
    table, there, back = write_ants(tmp_path / "a.csv", ras), tmp_path / "b.csv", tmp_path / "c.csv"
    words = [word for name in chain for word in ("-t", name.replace("warp", str(warp)))]
    assert regnet("apply", "--points", table, *words, "--to", "moving", "--out", there) == 0
    assert regnet("apply", "--points", there, *words, "--to", "fixed", "--out", back) == 0
    assert float((read_ants(back, 3) - ras * LPS).norm(dim=1).max()) < 1e-3
    moved = float((read_ants(there, 3) - ras * LPS).norm(dim=1).max())
    assert moved < 1e-5 if "warp:inverse" in chain or not chain else moved > 1


def test_c35_a_landmark_of_the_fixed_image_goes_along_the_field(tmp_path: Path) -> None:
    """Field +2 along axis 0: the voxel at fixed 8 shows moving 10, so its landmark goes to 10, and back to 8."""
    grid = Grid((16, 6, 5), torch.eye(4))
    flow = torch.zeros(3, *grid.shape)
    flow[0] = 2
    write_transform(tmp_path / "warp.nii.gz", Displacement(flow, grid), grid)
    write_image(tmp_path / "image.nii.gz", torch.zeros(grid.shape), grid)
    (tmp_path / "p.txt").write_text("8 3 2\n")
    common = ("--space", "voxel", "--reference", tmp_path / "image.nii.gz", "--moving", tmp_path / "image.nii.gz")
    words = ("apply", "--points", tmp_path / "p.txt", "-t", tmp_path / "warp.nii.gz", *common)
    assert regnet(*words, "--out", tmp_path / "there.txt") == 0
    assert read_points(tmp_path / "there.txt", "voxel").coordinates.tolist() == [[10, 3, 2]]
    assert regnet(*words, "--to", "fixed", "--out", tmp_path / "back.txt") == 0
    assert read_points(tmp_path / "back.txt", "voxel").coordinates.tolist() == [[6, 3, 2]]


@pytest.mark.parametrize("to", ["moving", "fixed"])
def test_the_spaces_agree(tmp_path: Path, warp: Path, to: str) -> None:
    """The same points as voxels, RAS and LPS end at the same place, on images of other grids."""
    fixed, moving = fixed_grid(3), moving_grid(3)
    write_image(tmp_path / "fixed.nii.gz", torch.zeros(fixed.shape), fixed)
    write_image(tmp_path / "moving.nii.gz", torch.zeros(moving.shape), moving)
    here, there = (fixed, moving) if to == "moving" else (moving, fixed)
    ras = inner_points(fixed_grid(3))
    given = {"ras": ras, "lps": ras * LPS, "voxel": here.to_voxel(ras)}
    ends = []
    for space, points in given.items():
        rows = "\n".join(" ".join(f"{x:.9f}" for x in point) for point in points.tolist())
        (tmp_path / f"{space}.txt").write_text(f"# {space}\n{rows}\n")
        words = ("--reference", tmp_path / "fixed.nii.gz", "--moving", tmp_path / "moving.nii.gz", "--to", to)
        out = tmp_path / f"out_{space}.txt"
        words = ("--points", tmp_path / f"{space}.txt", "--space", space, "-t", warp, *words, "--out", out)
        assert regnet("apply", *words) == 0
        assert out.read_text("utf-8").startswith(f"# {space}\n")
        ends.append(read_points(out, space).world(3, there))
    for end in ends[1:]:
        torch.testing.assert_close(end, ends[0], atol=2e-5, rtol=0)
    expected = read_transform(warp).map_points(ras if to == "moving" else ends[0])
    torch.testing.assert_close(expected, ends[0] if to == "moving" else ras, atol=1e-3, rtol=0)


FCSV = """# Markups fiducial file version = 4.11
# CoordinateSystem = {system}
# columns = id,x,y,z,ow,ox,oy,oz,vis,sel,lock,label,desc,associatedNodeID
vtkMRMLMarkupsFiducialNode_0,{0},{1},{2},0,0,0,1,1,1,0,"F,1",,
"""
POINT = (4.0, -6.5, 8.25)


@pytest.mark.parametrize("system", ["LPS", "RAS", "0", "1"])
def test_slicers_lists_say_their_space(tmp_path: Path, warp: Path, system: str) -> None:
    text = FCSV.format(*POINT, system=system)
    (tmp_path / "a.fcsv").write_text(text)
    out = tmp_path / "b.fcsv"
    assert regnet("apply", "--points", tmp_path / "a.fcsv", "-t", warp, "--out", out) == 0
    ras = torch.tensor([POINT], dtype=torch.float64) * (LPS if system in ("LPS", "1") else 1)
    points = read_points(out)
    torch.testing.assert_close(points.world(3), read_transform(warp).map_points(ras), atol=1e-5, rtol=0)
    assert out.read_text("utf-8").splitlines()[:3] == text.splitlines()[:3]
    assert out.read_text("utf-8").splitlines()[3].endswith(',0,0,0,1,1,1,0,"F,1",,')


def markups(system: str) -> str:
    points = [{"id": "1", "label": "F-1", "position": list(POINT), "visibility": True}]
    return json.dumps({"markups": [{"type": "Fiducial", "coordinateSystem": system, "controlPoints": points}]})


def point_set(space: str) -> str:
    coordinates = dict(zip("xyz", POINT, strict=True))
    points = [{"coordinates": coordinates, "legacy_stat": 1, "comments": []}]
    return json.dumps({"data_type": "fs_pointset", "vox2ras": space, "points": points, "color": [255, 0, 0]})


@pytest.mark.parametrize(
    ("name", "text", "is_lps"),
    [
        ("a.mrk.json", markups("LPS"), True),
        ("a.mrk.json", markups("RAS"), False),
        ("a.json", point_set("scanner_ras"), False),
        ("a.dat", "4.0 -6.5 8.25\ninfo\nnumpoints 1\nuseRealRAS 1\n", False),
        ("a.label", "#!ascii label  , from subject me vox2ras=scanner\n1\n-1  4.0  -6.5  8.25 0.0\n", False),
    ],
)
def test_other_tools_files_keep_all_that_is_no_coordinate(
    tmp_path: Path, warp: Path, name: str, text: str, is_lps: bool
) -> None:
    (tmp_path / name).write_text(text)
    out = tmp_path / f"out{name}"
    assert regnet("apply", "--points", tmp_path / name, "-t", warp, "--out", out) == 0
    ras = torch.tensor([POINT], dtype=torch.float64) * (LPS if is_lps else 1)
    moved = read_points(out)
    torch.testing.assert_close(moved.world(3), read_transform(warp).map_points(ras), atol=1e-5, rtol=0)
    # with the old point in its place the file is the old one
    again = read_points(out).moved(ras)
    old = again.layout.render(again.coordinates.tolist()) if again.layout else ""
    if name.endswith("json"):
        assert json.loads(old) == json.loads(text)
    else:
        words = [word if "." not in word else float(word) for word in old.split()]
        assert words == [word if "." not in word else float(word) for word in text.split()]


@pytest.mark.parametrize(
    ("name", "text", "extra", "reason"),
    [
        ("a.csv", "x,y,z\n1,2,3\n", (), "does not say in which space"),
        ("a.txt", "1 2 3\n", (), "does not say in which space"),
        ("a.csv", "x,y,z,t\n1,2,nan,0\n", (), "point 1 has a coordinate that is NaN"),
        ("a.csv", "x,y,z,t\n1,2,3,0\n1,2,q,0\n", (), "line 3 is no point"),
        ("a.csv", "x,y,z,t\n1,2\n", (), "line 2 is no point"),
        ("a.csv", "name,r,a,s\nv,1,2,3\n", (), "the columns x, y and z are needed, found name, r, a, s"),
        ("a.txt", "7\n", ("--space", "ras"), "line 1 has 1 number"),
        ("a.csv", "0,1,2,3\n", ("--space", "ras"), "line 1 has more numbers than a point"),
        ("a.csv", "", ("--space", "ras"), "holds no points"),
        ("a.csv", "x,y,z\n", ("--space", "ras"), "holds no points"),
        ("a.txt", "1 2\n", ("--space", "ras"), "has 2 coordinates a point; 3 are needed"),
        ("a.txt", "1 2 3\n", ("--space", "voxel"), "points in voxels need --reference"),
        ("a.fcsv", FCSV.format(*POINT, system="LPS"), ("--space", "ras"), "the file says its points are in lps"),
        ("a.fcsv", FCSV.format(*POINT, system="IJK"), (), "its points are in IJK"),
        ("a.dat", "1 2 3\ninfo\nnumpoints 1\nuseRealRAS 0\n", (), "surface coordinates"),
        ("a.label", "#!ascii label , from subject vox2ras=TkReg\n1\n-1 1 2 3 0\n", (), "surface coordinates"),
        ("a.json", point_set("tkreg"), (), "its points are in tkreg"),
        ("a.json", "[1, 2", (), "not a file of points"),
        ("a.json", "[1, 2]", (), "neither a list of markups"),
        ("a.xyz", "1 2 3\n", (), "not a file of points we know"),
    ],
)
def test_points_that_cannot_be_used_are_named_in_one_line(
    tmp_path: Path, warp: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, extra: tuple, reason: str
) -> None:
    (tmp_path / name).write_text(text)
    out = tmp_path / f"out_{name}"
    line = refused(capsys, "apply", "--points", tmp_path / name, "-t", warp, *extra, "--out", out)
    assert reason in line and str(tmp_path / name) in line
    assert not out.exists()


def test_missing_files_and_other_names_are_refused(
    tmp_path: Path, warp: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write_ants(tmp_path / "a.csv", inner_points(fixed_grid(3)))
    words = ("apply", "--points", table, "-t", warp)
    assert "written as .csv" in refused(capsys, *words, "--out", tmp_path / "b.fcsv")
    assert "no such file" in refused(capsys, "apply", "--points", tmp_path / "no.csv", "--out", tmp_path / "b.csv")
    assert "is an input" in refused(capsys, *words, "--out", table, "--overwrite")
    assert "give --moving and --reference" in refused(capsys, "apply", "-t", warp, "--out", tmp_path / "b.nii")
    flat = tmp_path / "flat.nii"
    nib.save(nib.Nifti1Image(np.zeros((4, 5), np.float32), np.eye(4)), flat)
    assert f"{flat} is 2-D" in refused(capsys, *words, "--moving", flat, "--out", tmp_path / "b.csv")


@pytest.mark.filterwarnings("default")
def test_points_that_nothing_is_mapped_to_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """x -> |x - 8| + 8 along axis 0: what lies below 8 mm has no place that is mapped there."""
    grid = Grid((17, 6, 5), torch.eye(4))
    x = torch.arange(17.0)
    flow = torch.zeros(3, *grid.shape)
    flow[0] = ((x - 8).abs() + 8 - x)[:, None, None]
    write_transform(tmp_path / "fold.nii.gz", Displacement(flow, grid), grid)
    (tmp_path / "p.txt").write_text("12 3 2\n6 3 2\n")
    words = ("--points", tmp_path / "p.txt", "--space", "ras", "--to", "fixed", "-t", tmp_path / "fold.nii.gz")
    assert regnet("apply", *words, "--out", tmp_path / "q.txt") == 0
    assert "1 points have no place that is mapped to them" in capsys.readouterr().err


def test_points_of_space_do_not_go_along_a_map_of_the_plane(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flat, warp = fixed_grid(2), tmp_path / "warp.nii.gz"
    write_transform(warp, Displacement(smooth_flow(flat, 3.0), flat), flat)
    table, out = tmp_path / "points.csv", tmp_path / "out.csv"
    table.write_text("x,y,z\n3,4,5\n4,5,6\n")
    words = ("apply", "--points", table, "--space", "ras", "-t", warp, "--out", out)
    assert "lie in no plane, but" in refused(capsys, *words)
    table.write_text("x,y,z\n3,4,5\n4,5,5\n")  # those of a slice at height 5
    assert regnet(*words) == 0
    assert read_points(out, "ras").coordinates[:, 2].tolist() == [5, 5]
    solid = fixed_grid(3)
    write_transform(warp, Displacement(smooth_flow(solid, 3.0), solid), solid)
    table.write_text("x,y\n3,4\n4,5\n")
    assert "3 are needed" in refused(capsys, *words, "--overwrite")
